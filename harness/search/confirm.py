"""Run a shrunk program again where nothing else has run, and under other conditions."""

from concurrent.futures import ThreadPoolExecutor

from harness.engine.device import Device
from harness.errors import UsageError
from harness.isolation.interruption import Stopped
from harness.isolation.messages import Run
from harness.isolation.nursery import Nursery
from harness.isolation.ran import Ran
from harness.outcome import Outcome

COLD_RUNS = 3


def confirmations(ran: Ran, nursery: Nursery, at_once: int, stopped: Stopped, runs: int = COLD_RUNS) -> list[Ran]:
    """The program in cold processes, `at_once` of them side by side."""
    with ThreadPoolExecutor(at_once) as pool:
        cold = [pool.submit(nursery.run, Run(ran.program), stopped) for _ in range(runs)]
        return [one.result() for one in cold]


def variants(ran: Ran, nursery: Nursery, device: Device, stopped: Stopped) -> list[tuple[str, Outcome]]:
    """Of a fault on a GPU, which shows late and elsewhere: every launch awaited, and no graphs."""
    if device is not Device.CUDA or not (ran.outcome.kind == "dies" or ran.outcome.device_fault):
        return []
    awaited = nursery.run(Run(ran.program), stopped, {"CUDA_LAUNCH_BLOCKING": "1"})
    tried = [("CUDA_LAUNCH_BLOCKING=1", awaited.outcome)]
    eager = ran.program.model_copy(update={"config": ran.program.config.model_copy(update={"graphs": ()})})
    if ran.program.config.graphs:
        try:
            tried.append(("without CUDA graphs", nursery.run(Run(eager), stopped).outcome))
        except UsageError as error:
            tried.append(("without CUDA graphs", Outcome(kind="raises", text=str(error))))
    return tried
