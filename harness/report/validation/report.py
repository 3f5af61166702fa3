"""All that a report says, as one value."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import fields
from datetime import datetime
from typing import Literal, Self

from harness.configuration import Value
from harness.engine.device import Device
from harness.isolation import gpus
from harness.patches.beside import files
from harness.patches.reading import text_of
from harness.report import facts
from harness.search.environment import environment
from harness.validation.plan import Plan
from harness.validation.stage import Coverage, Stage, Status
from harness.validation.verdict import Verdict, judge, total

ON = {Device.CPU: "on the emulated device (CPU)", Device.CUDA: "on a GPU"}
NO_GPU = "; what only a GPU shows isn't covered"


class PatchFile(Value):
    """A file of the patch, as it was."""

    name: str
    sha256: str
    text: str


class Report(Value):
    """A validation, from the patch to the verdict."""

    version: Literal[1] = 1
    verdict: Verdict
    reasons: tuple[str, ...]
    """Why it isn't safe."""
    patch: str
    patch_files: tuple[PatchFile, ...]
    release: str
    """Of SGLang."""
    device: str
    gpus: tuple[str, ...]
    profile: str
    workers: tuple[str, ...]
    threshold: int
    seed: int
    loosened: tuple[str, ...] = ()
    """Limits that a person has moved, as options."""
    started: datetime
    seconds: float
    command: str
    """To repeat it."""
    stages: tuple[Stage, ...]
    coverage: Coverage
    environment: str

    @classmethod
    def of(cls, plan: Plan, stages: Sequence[Stage], started: datetime, seconds: float, command: str) -> Self:
        """Put together what a validation gave."""
        verdict, reasons = judge(stages, plan.most_skipped, plan.changed)
        on_gpu = plan.device is Device.CUDA
        used = [str(gpu) for gpu in gpus.survey() if {None, gpu.identifier} & {*plan.gpus}] if on_gpu else []
        return cls(
            verdict=verdict,
            reasons=tuple(reasons),
            patch=plan.title,
            patch_files=tuple(_kept(name, text_of(file)) for name, file in files(plan.patch).items()),
            release=facts.release(),
            device=plan.device.value,
            gpus=tuple(used),
            profile=plan.profile.value,
            workers=tuple(worker.value for worker in plan.workers),
            threshold=plan.threshold,
            seed=plan.seed,
            loosened=tuple(_loosened(plan)),
            started=started,
            seconds=seconds,
            command=command,
            stages=tuple(stages),
            coverage=total(stages),
            environment=environment(plan.device).result(),
        )

    @property
    def headline(self) -> str:
        """The verdict in one line, with how far it reaches."""
        safe = self.verdict is Verdict.SAFE
        left_out = [stage.name for stage in self.stages if safe and stage.status is Status.LEFT_OUT]
        where = ON[Device(self.device)]
        scope = [f"profile {self.profile}"]
        scope += [f"worker {self.workers[0]} alone"] if len(self.workers) == 1 else []
        scope += [f"without {', '.join(left_out)}"] if left_out else []
        scope += self.loosened
        end = NO_GPU if safe and self.device == Device.CPU else ""
        return f"{self.patch} is {self.verdict} {where} ({', '.join(scope)}){end}"


def _loosened(plan: Plan) -> Iterator[str]:
    for name in ("most_skipped", "most_step_ratio"):
        usual = next(field.default for field in fields(Plan) if field.name == name)
        if getattr(plan, name) > usual:
            yield f"--{name.replace('_', '-')} {getattr(plan, name):g}"


def _kept(name: str, text: str) -> PatchFile:
    return PatchFile(name=name, sha256=hashlib.sha256(text.encode()).hexdigest(), text=text)
