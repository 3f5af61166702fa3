"""The pytest plugin: which device tests run on, a GPU for each worker, and the journal of a worker that died.

Named in a top-level conftest.py's `pytest_plugins`. Must not import torch: a GPU is chosen before torch looks for one.
"""

import json
import os
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from harness.emulation import environment
from harness.engine.device import Device
from harness.errors import UsageError
from harness.isolation import machine
from harness.isolation.gpus import VISIBLE
from harness.pytesting import poisoned
from harness.pytesting.choice import AUTO, Choice, choose

CHOICE = pytest.StashKey[Choice]()
SCHEDULING = pytest.StashKey[Any]()
"""pytest-xdist's scheduler, in the controller."""
FROM_CONTROLLER = "toggle_harness"
"""Key of what a worker of pytest-xdist is told, in its `workerinput`."""
ALONE = "master"
"""What pytest-xdist calls the worker where there are no others."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options of every run."""
    parser.addoption(
        "--device",
        choices=(AUTO, *Device),
        default=AUTO,
        help="where engines run: auto takes a GPU where there is one to be had, cpu is the emulated device",
    )
    parser.addoption(
        "--require-gpu",
        action="store_true",
        help="an error, not skipped tests, where no GPU is to be had",
    )
    parser.addoption("--patch", default="warm", help="what the property tests search: a name, or a patch.py")
    parser.addoption("--examples", type=int, default=10, help="programs of each configuration that is searched")
    parser.addoption("--search-seed", type=int, default=1, help="repeats a search")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """`-n auto`: a worker for each usable GPU; without one, as many as cores and memory carry."""
    choice = _choice_of(config, wanted=config.getoption("maxprocesses"))
    if choice.device is Device.CUDA:
        return len(choice.gpus)
    if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ:
        return None  # pytest-xdist's own hook reads it
    return machine.workers_without_gpu(machine.cores(), machine.memory_bytes())


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Put this process on its device, before any test module imports torch or triton."""
    told = _told(config)
    if told is not None:
        config.stash[CHOICE] = Choice(Device(told["device"]), left_out=(told["why_no_gpu"],))
    else:
        choice = _choice_of(config, wanted=_workers(config))
        config.add_cleanup(choice.release)
        if choice.gpus and not _distributes(config):
            _see_only(choice.gpus[0].identifier)
    if device_of(config) is Device.CPU:
        environment.prepare()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config: pytest.Config, specs: list[Any]) -> None:
    """A GPU for each worker, in turn where there are more workers than GPUs.

    execnet sets a specification's variables as its process starts. pytest-xdist starts a dead worker's replacement
    from the same specification, so that it has the same GPU.
    """
    usable = config.stash[CHOICE].gpus
    for place, spec in enumerate(specs):
        if usable and spec.popen:
            spec.env[VISIBLE] = usable[place % len(usable)].identifier


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a worker what was decided."""
    choice = node.config.stash[CHOICE]
    node.workerinput[FROM_CONTROLLER] = {
        "device": choice.device.value,
        "why_no_gpu": choice.why_no_gpu,
        "folder": str(_folder(node.config)),
    }


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Groups that survive the death of a worker."""
    if config.getoption("dist") != "loadgroup":
        return None
    from harness.pytesting.scheduling import GroupScheduling  # imports pytest-xdist, which is here now

    config.stash[SCHEDULING] = GroupScheduling(config, log)
    return config.stash[SCHEDULING]


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist tells the controller that this worker has collected
def pytest_collection_finish(session: pytest.Session) -> None:
    """Leave the groups of a worker's tests to the controller, which collects nothing itself."""
    if _told(session.config) is not None:
        groups = {item.nodeid: _group_of(item) for item in session.items}
        known = {test: group for test, group in groups.items() if group}
        _groups_file(session.config, _worker_of(session.config)).write_text(json.dumps(known))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_node_collection_finished(node: Any) -> None:
    """Take the groups over."""
    if SCHEDULING in node.config.stash:
        node.config.stash[SCHEDULING].groups = json.loads(_groups_file(node.config, node.gateway.id).read_text())


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Which device, and why not another."""
    return config.stash[CHOICE].lines()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip what needs a GPU where there is none to be had, and say why."""
    if device_of(config) is Device.CUDA:
        return
    skip = pytest.mark.skip(reason=f"needs an NVIDIA GPU: {config.stash[CHOICE].why_no_gpu}")
    for item in items:
        if item.get_closest_marker("gpu"):
            item.add_marker(skip)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> None:
    """Empty the journal, or a test that dies before it runs a program is explained by the test before it."""
    journal = journal_of(item.config, _worker_of(item.config))
    if journal.exists():
        os.truncate(journal, 0)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """End a worker whose GPU a test has made unusable, so that another takes its place; alone, end the run.

    Looked at after whatever raised, expected or not.
    """
    report = yield
    if call.excinfo is not None and (fault := poisoned.fault()):
        if _told(item.config) is not None:
            poisoned.leave(_fault_file(item.config, _worker_of(item.config)), fault, report)
            os._exit(1)
        item.session.shouldstop = f"the GPU can't be used any more ({fault}): -n auto goes on in a new process"
    return report


@pytest.hookimpl(optionalhook=True)
def pytest_handlecrashitem(report: pytest.TestReport) -> None:
    """Say what a worker was doing when it died; pytest-xdist has replaced it by then, or is about to."""
    from harness.isolation import journal  # imports pydantic, which most controllers never need

    node: Any = report.node  # pytest-xdist's
    left = poisoned.left(_fault_file(node.config, node.gateway.id))
    if left is not None:
        report.longrepr = f"{left.failure}\n{report.longrepr}\nit ended itself, its GPU being unusable: {left.fault}"
        report.sections += left.sections
    entry = journal.last(journal_of(node.config, node.gateway.id))
    if entry is None:
        report.longrepr = f"{report.longrepr}\nits journal is empty: the test was running no program"
    else:
        report.longrepr = f"{report.longrepr}\nits journal ends {entry}"
        report.sections.append(("the program until then, for `toggle-harness run FILE`", entry.until.to_json()))


def device_of(config: pytest.Config) -> Device:
    """The device that this process's tests run on."""
    return config.stash[CHOICE].device


def journal_of(config: pytest.Config, worker_id: str) -> Path:
    """Where a worker's engines write their journal, for that worker and for the process that started it.

    `worker_id` is pytest-xdist's, as of its fixture of that name.
    """
    return _folder(config) / f"journal-{worker_id}.jsonl"


@pytest.fixture(scope="session")
def device(request: pytest.FixtureRequest) -> Device:
    """The device that tests run on."""
    return device_of(request.config)


@pytest.fixture(scope="session")
def journal_path(request: pytest.FixtureRequest) -> Path:
    """The journal of this process's engines."""
    return journal_of(request.config, _worker_of(request.config))


def _choice_of(config: pytest.Config, wanted: int | None) -> Choice:
    """This run's choice, made when it is first asked for."""
    if CHOICE not in config.stash:
        try:
            config.stash[CHOICE] = choose(config.getoption("--device"), wanted, config.getoption("--require-gpu"))
        except UsageError as error:
            raise pytest.UsageError(str(error)) from None
    return config.stash[CHOICE]


def _told(config: pytest.Config) -> dict[str, str] | None:
    """What the controller told this worker; None in a process that is no worker."""
    told: dict[str, str] | None = getattr(config, "workerinput", {}).get(FROM_CONTROLLER)
    return told


def _folder(config: pytest.Config) -> Path:
    """The run's folder for temporary files, of which a worker's is a part."""
    told = _told(config)
    if told is not None:
        return Path(told["folder"])
    return Path(config._tmp_path_factory.getbasetemp())  # type: ignore[attr-defined]  # hooks have no fixtures


def _fault_file(config: pytest.Config, worker_id: str) -> Path:
    return _folder(config) / f"fault-{worker_id}.txt"


def _groups_file(config: pytest.Config, worker_id: str) -> Path:
    return _folder(config) / f"groups-{worker_id}.json"


def _group_of(item: pytest.Item) -> str:
    """Its name; of several marks all names, as pytest-xdist has it."""
    names = {str((*mark.args, *mark.kwargs.values(), "default")[0]) for mark in item.iter_markers("xdist_group")}
    return "_".join(sorted(names))


def _worker_of(config: pytest.Config) -> str:
    return str(getattr(config, "workerinput", {}).get("workerid", ALONE))


def _distributes(config: pytest.Config) -> bool:
    return bool(config.getoption("tx", None)) and config.getoption("dist", "no") != "no"


def _workers(config: pytest.Config) -> int | None:
    """How many processes run tests; None where only --tx says."""
    if not _distributes(config):
        return 1
    return len(config.getoption("tx")) if config.getoption("numprocesses") else None


def _see_only(identifier: str) -> None:
    if os.environ.get(VISIBLE) == identifier:
        return
    if "torch" in sys.modules:
        raise pytest.UsageError(
            "torch was imported before pytest chose a GPU: let no conftest.py or plugin import it at its top, "
            f"or set {VISIBLE}={identifier} yourself"
        )
    os.environ[VISIBLE] = identifier
