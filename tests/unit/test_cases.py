"""Reading cases: what is missing, unreadable or unknown is named."""

from pathlib import Path

import pytest

from harness.cases import Expected, load
from harness.configuration import EngineConfig
from harness.engine.device import Device
from harness.errors import UsageError
from harness.outcome import Outcome
from harness.program import Program, Submit

PASSES = Outcome(kind="passes")
FAILS = Outcome(kind="fails", check="I6-spec-info", step=4, text="rows of spec_info.topk_p is 1")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    program = Program(config=EngineConfig(), operations=(Submit(),))
    (tmp_path / "program.json").write_text(program.to_json())
    (tmp_path / "expected.json").write_text(Expected(cpu=FAILS).model_dump_json())
    return tmp_path


def test_there_and_back(folder: Path) -> None:
    case = load(folder)
    assert case.expected.on(Device.CPU) == FAILS
    assert case.expected.on(Device.CUDA) is None
    assert case.program.submits == (Submit(),)


@pytest.mark.parametrize("name", ["program.json", "expected.json"])
def test_a_missing_file(folder: Path, name: str) -> None:
    (folder / name).unlink()
    with pytest.raises(UsageError, match=f"{name}: No such file or directory"):
        load(folder)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("program.json", "{", "program.json: not JSON"),
        ("expected.json", "{", "expected.json: not JSON"),
        ("expected.json", '{"version": 2}', "expected.json: version: Input should be 1"),
        ("expected.json", '{"version": 1, "cpu": {"kind": "explodes"}}', "expected.json: cpu.kind: Input should be"),
        ("expected.json", '{"cpu": {"kind": "fails", "check": "I99"}}', "expected.json: no check I99: there are I1-"),
        ("expected.json", b"\xff\xfe", "expected.json: 'utf-8' codec can't decode"),
    ],
)
def test_an_unreadable_file(folder: Path, name: str, content: str | bytes, message: str) -> None:
    (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(UsageError, match=message):
        load(folder)


def test_no_folder(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no case"):
        load(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("seen", "meets"),
    [
        (FAILS, True),
        (FAILS.model_copy(update={"text": "rows of spec_info.topk_p is 1, must be 2"}), True),
        (FAILS.model_copy(update={"text": "something else"}), False),
        (FAILS.model_copy(update={"step": 5}), False),
        (FAILS.model_copy(update={"check": "I1-shapes"}), False),
        (PASSES, False),
    ],
)
def test_what_meets_an_expectation(seen: Outcome, meets: bool) -> None:
    assert seen.meets(FAILS) is meets
