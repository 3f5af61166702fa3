"""Workers that die: others in their place, on the same GPUs, and reports that say what they were doing."""

import re

import pytest

from tests.pytesting.conftest import CONFTEST, Run

SEEN_BY_EACH = """
import os
from pathlib import Path


def pytest_configure(config):
    if hasattr(config, "workerinput"):
        Path(f"{config.workerinput['workerid']}.seen").write_text(os.environ["CUDA_VISIBLE_DEVICES"])
"""

GROUP = """
import os
import signal

import pytest

from harness.pytesting.plugin import journal_of

pytestmark = pytest.mark.xdist_group("one-engine")


def test_dies_in_a_program(request, worker_id):
    from harness.configuration import EngineConfig  # takes half a second, in this worker only
    from harness.isolation.journal import Journal
    from harness.program import Drain, Program, Step, Submit

    journal = Journal(journal_of(request.config, worker_id))
    journal.begin(Program(config=EngineConfig(), operations=(Submit(count=3), Step(count=5), Drain())))
    journal.operation(1)
    journal.step(0)
    journal.step(1)
    os.kill(os.getpid(), signal.SIGKILL)


def test_writes_a_journal(journal_path):
    journal_path.write_text("a program that ran to its end")


def test_dies_without_a_program(journal_path):
    assert journal_path.read_text() == ""  # there, since a group keeps to one worker
    os.abort()


def test_after():
    pass
"""

PLUGIN_ALONE = 'pytest_plugins = ["harness.pytesting.plugin"]'

POISONING = """
import sys
from types import SimpleNamespace

import pytest


def synchronize():
    raise RuntimeError("CUDA error: device-side assert triggered\\nCompile with TORCH_USE_CUDA_DSA")


@pytest.fixture
def poisoned():
    cuda = SimpleNamespace(is_initialized=lambda: True, synchronize=synchronize)
    sys.modules["torch"] = SimpleNamespace(cuda=cuda)  # for good, as it would be
    print("Assertion `index out of bounds` failed.", file=sys.stderr)


def test_poisons_its_gpu(poisoned):
    assert "what was expected" == "what was seen"


def test_after():
    assert "torch" not in sys.modules


@pytest.mark.xfail
def test_poisons_its_gpu_as_expected(poisoned):
    assert "what was expected" == "what was seen"


@pytest.fixture
def poisoning(poisoned):
    yield
    raise RuntimeError("in teardown")


def test_poisons_its_gpu_in_teardown(poisoning):
    pass


def test_at_the_end():
    assert "torch" not in sys.modules
"""

OTHERS = """
import pytest


@pytest.mark.parametrize("number", range(3))
def test_on_its_own(number):
    pass
"""

IN_A_PROGRAM = [
    "worker 'gw?' crashed while running 'test_a_group.py::test_dies_in_a_program*'",
    "its journal ends in operation 1, Step(count=5), step 1, of Program(*",
    "*the program until then, for `toggle-harness run FILE`*",
    '*"count": 3,*',
    '*"count": 2',  # of the five steps, those that had begun
]

WITHOUT_A_PROGRAM = [
    "worker 'gw?' crashed while running 'test_a_group.py::test_dies_without_a_program*'",
    "its journal is empty: the test was running no program",
]


def test_workers_that_die_are_replaced(pytester: pytest.Pytester, run: Run) -> None:
    """In groups, as this project's tests are: pytest-xdist 3.8.0 alone runs the dying test again, and again."""
    pytester.makeconftest(CONFTEST + SEEN_BY_EACH)
    pytester.makepyfile(test_a_group=GROUP, test_others=OTHERS)
    result = run("-n", "auto", "--dist", "loadgroup", gpus=({"uuid": "GPU-aa01"}, {"uuid": "GPU-aa02"}))
    result.assert_outcomes(passed=5, failed=2)
    result.stdout.fnmatch_lines(IN_A_PROGRAM)
    result.stdout.fnmatch_lines(WITHOUT_A_PROGRAM)

    gpu_of = {file.stem: file.read_text() for file in pytester.path.glob("*.seen")}
    dead = re.findall(r"replacing crashed worker (gw\d)", result.stdout.str())
    assert [gpu_of["gw0"], gpu_of["gw1"]] == ["GPU-aa01", "GPU-aa02"]
    assert [gpu_of["gw2"], gpu_of["gw3"]] == [gpu_of[worker] for worker in dead]


def test_a_worker_with_a_poisoned_gpu_is_replaced(pytester: pytest.Pytester, run: Run) -> None:
    """Its process lives, but every test after it would fail with the same fault."""
    pytester.makeconftest(PLUGIN_ALONE)
    pytester.makepyfile(test_gpu=POISONING)
    result = run("-n", "1", "--dist", "loadgroup", gpus=({"uuid": "GPU-aa01"},))
    result.assert_outcomes(failed=3, passed=3)  # among them the test whose teardown failed
    dead = re.findall(r"worker 'gw\d' crashed while running 'test_gpu.py::(\w+)'", result.stdout.str())
    poisoners = {"test_poisons_its_gpu", "test_poisons_its_gpu_as_expected", "test_poisons_its_gpu_in_teardown"}
    assert set(dead) == poisoners
    result.stdout.fnmatch_lines(
        [
            "*AssertionError: assert 'what was expected' == 'what was seen'",
            "worker 'gw0' crashed while running 'test_gpu.py::test_poisons_its_gpu'",
            "it ended itself, its GPU being unusable: CUDA error: device-side assert triggered",
            "*Captured stderr setup*",
            "Assertion `index out of bounds` failed.",
        ]
    )


def test_a_poisoned_gpu_ends_a_run_without_workers(pytester: pytest.Pytester, run: Run) -> None:
    """Nothing can take the process's place."""
    pytester.makeconftest(PLUGIN_ALONE)
    pytester.makepyfile(test_gpu=POISONING)
    result = run(gpus=({"uuid": "GPU-aa01"},))
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*the GPU can't be used any more (CUDA error: device-side assert triggered)*-n auto*"])
