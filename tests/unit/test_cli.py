"""What a person gets wrong is one line on standard error and exit code 2, before an engine boots."""

import sys
from pathlib import Path

import pytest

from harness import cli, diagnosis
from harness.configuration import EngineConfig
from harness.engine.device import Device
from harness.program import Program, Submit


def call(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["toggle-harness", *arguments])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return int(ended.value.code or 0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("", "Missing command"),
        ("walk", "No such command 'walk'"),
        ("run", "nothing to run: give a program file, or --batch-sizes 1,10,3"),
        ("run --batch-size 1", "No such option: --batch-size"),
        ("run --batch-sizes 1,ten", "--batch-sizes '1,ten' isn't a list of numbers from 0 on, such as 1,10,3"),
        ("run --batch-sizes 1,99", "batch size 99 needs max_running_requests >= 99"),
        ("run --batch-sizes 1 --kv-tokens 20", "the KV pool is too small for the program"),
        ("run --batch-sizes 1 --worker v3", "'v3' is not one of 'none', 'v1', 'v2'"),
        ("run --batch-sizes 1 --worker v2 --topk 4", "worker v2 supports topk 1 only, not 4"),
        ("run --batch-sizes 1 --topk 4 --draft-tokens 99", "draft_tokens=99 doesn't fit"),
        ("run --batch-sizes 1 --dtype int4", "dtype: Input should be 'float32', 'bfloat16' or 'float16'"),
        ("run --batch-sizes 1 --target /no/model --draft /no/draft", "no model in /no/model"),
        ("run --batch-sizes 1 --draft /no/draft", "--draft needs --target"),
        ("run --batch-sizes 1 --attention-backend flashinfer", "attention_backend flashinfer has no float32"),
        ("run /no/program.json", "/no/program.json: No such file or directory"),
        ("run /no/program.json --worker v1", "a program file brings its own configuration"),
        ("run --batch-sizes 1,1,1,1,1,1,1,1,1,1 --steps-each 15", "more than context_length 512 leaves"),
        ("run /no/program.json --topk 0", "a program file brings its own configuration"),
        ("run /no/program.json --steps-each 3", "a program file brings its own configuration"),
        ("run --batch-sizes 1 --max-running-requests 0", "max_running_requests: Input should be greater than 0"),
        ("run --batch-sizes 1 --threshold 5", "--threshold and --hysteresis need --toggle warm"),
        ("run --batch-sizes 1 --toggle warm", "--toggle needs --threshold"),
        ("run --batch-sizes 1 --patch attempt-1", "--patch needs --threshold"),
        ("run --batch-sizes 1 --patch no-such --threshold 5", "no patch no-such: there are warm"),
        ("run --batch-sizes 1 --toggle warm --threshold 0", "toggle: threshold: Input should be greater than 0"),
        ("run --batch-sizes 1 --toggle warm --threshold x", "Invalid value for '--threshold'"),
        ("run --batch-sizes 1 --toggle cold --threshold 5", "toggle: strategy: Input should be 'warm' or 'plain'"),
        ("run --batch-sizes 1 --toggle warm --threshold 5 --hysteresis 5", "hysteresis 5 must be smaller"),
        ("run --batch-sizes 1 --toggle warm --threshold 5 --worker none", "a toggle needs speculation to switch"),
        ("run --batch-sizes 1 --toggle warm --threshold 5 --worker v2 --topk 4", "topk 1 only, not 4"),
        ("run --batch-sizes 1 --checks I13", "no check I13: there are I1-shapes"),
        ("bench checks --checks I0", "no check I0: there are I1-shapes"),
        ("replay", "name the folders of cases, or give --all"),
        ("replay cases/no-such", "no case cases/no-such: give a folder with program.json and expected.json"),
        ("replay --all cases/upstream", "name the folders of cases, or give --all"),
        ("bench toggle --threshold 16", "a batch of 16 would never step plainly"),
        ("bench toggle --shape gpt", "no shape gpt: there is llama-3.1-8b"),
        ("bench throughput --concurrency 0", "--concurrency '0' isn't a list of numbers from 1 on"),
        ("bench throughput --worker none", "--worker none: there is no speculation to switch"),
        (
            "bench throughput --engines warm,cold",
            "no engine cold: there are plain-no-overlap, always-spec,",
        ),
        ("bench throughput --worker v2 --engines plain-no-overlap", "no engine plain-no-overlap: there are plain,"),
        ("bench throughput --concurrency 1,8 --threshold 8", "--threshold 8: at most 8 requests run at once"),
        ("bench throughput --accept-length 5", "--accept-length 5: 3 steps accept 4 at most"),
        ("bench throughput --accept-length 0.5", "Invalid value for '--accept-length'"),
        ("bench throughput --new-tokens 1000", "the built-in pair is right up to 1024 tokens, not 64 + 1000"),
        ("bench throughput --prompt-tokens 5", "Invalid value for '--prompt-tokens'"),
        ("bench throughput --shape gpt", "no shape gpt: there is llama-3.1-8b"),
        ("bench throughput --shape llama-3.1-8b --target /no/model", "--shape or --target with --draft, not both"),
        ("bench throughput --target /no/model --draft /no/draft", "no model in /no/model"),
        ("bench throughput --device cuda", "no usable GPU for --device cuda"),
        ("bench throughput --output /proc/curves", "--output /proc/curves: No such file or directory"),
        ("bench threshold", "Missing argument 'CURVES'"),
        ("bench threshold /no/curves.json", "/no/curves.json: No such file or directory"),
        ("bench threshold pyproject.toml", "pyproject.toml: not the JSON of bench throughput: Invalid JSON"),
        ("bench profile --batch-size 0", "--batch-size '0' isn't a list of numbers from 1 on"),
        ("bench workload --pattern spiral", "no pattern spiral: there are ramp, bursts, day"),
        ("bench workload --low 9 --high 8", "--low 9 is more than --high 8"),
        ("bench workload --high 16", "--threshold 16: at most 16 requests run at once"),
        ("search --examples 0", "Invalid value for '--examples'"),
        ("search --examples 5 --minutes 1", "--examples or --minutes, not both"),
        ("search --patch no-such", "no patch no-such: there are warm"),
        ("search --patch no-such.py", "no patch no-such.py: no such file"),
        ("search --workers many", "--workers many: give auto, or how many programs shall run at once"),
        ("search --workers 0", "--workers 0: give auto"),
        ("search --worker none", "there is no speculation to switch"),
        ("search --worker v2 --patch attempt-1", "patch attempt-1 is written for v1"),
        ("search --output /proc/findings", "--output /proc/findings: No such file or directory"),
        ("search --database /proc/examples", "example database /proc/examples: No such file or directory"),
        ("search --database redis://localhost:1", "example database redis://localhost:1:"),
        ("search --device cuda", "no usable GPU for --device cuda"),
        ("validate", "Missing argument 'PATCH ...'"),
        ("validate no-such", "no patch no-such: there are warm"),
        ("validate /no/such.diff", "/no/such.diff: No such file or directory"),
        ("validate attempt-1 fault-01", "attempt-1 and fault-01 are both workers: give one of them"),
        ("validate attempt-1 --worker v2", "attempt-1 is written for v1"),
        ("validate warm --worker none", "there is no speculation to switch"),
        ("validate warm --profile slow", "'slow' is not one of 'quick', 'standard', 'release'"),
        ("validate warm --threshold 0", "Invalid value for '--threshold'"),
        ("validate warm --threshold-setting X", "threshold_setting: String should match pattern"),
        ("validate warm --output /proc/report", "--output /proc/report: No such file or directory"),
        ("validate warm --resume --output /tmp/no-such-validation", "holds no validation that was begun"),
        ("replay --all --record --times 2", "--record writes one run: leave out --times"),
        ("serve --concurrency 0", "--concurrency '0' isn't a list of numbers from 1 on"),
        ("serve --device cuda", "no usable GPU for --device cuda"),
        ("serve --device cpu --log /no/such/folder/log", "--log /no/such/folder/log: No such file or directory"),
        ("serve --max-new-tokens 0", "Invalid value for '--max-new-tokens'"),
        ("bench steps --device cuda", "no usable GPU for --device cuda"),
        ("bench steps --pairs 0", "Invalid value for '--pairs'"),
    ],
)
def test_wrong_usage(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: str, message: str
) -> None:
    assert call(monkeypatch, *arguments.split()) == 2
    errors = capsys.readouterr().err
    assert message in errors
    assert errors.count("\n") == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "not JSON"),
        ('{"version": 9, "program": {}}', "program version 9 isn't 1"),
        (Program(config=EngineConfig(kv_tokens=8), operations=(Submit(),)).to_json(), "KV pool is too small"),
    ],
)
def test_malformed_program_file(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, content: str, message: str
) -> None:
    file = tmp_path / "program.json"
    file.write_text(content)
    assert call(monkeypatch, "run", str(file)) == 2
    assert message in capsys.readouterr().err


def test_a_mistake_of_ours_isnt_taken_for_a_verdict(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """1 would be: unsafe."""

    def broken(*_: object) -> None:
        raise KeyError("mine")

    monkeypatch.setattr(cli, "app", lambda **_: broken())
    assert call(monkeypatch, "validate", "warm") == 70
    assert capsys.readouterr().err.splitlines()[-1] == "KeyError: 'mine'"


def test_a_gpu_that_isnt_there_is_a_finding(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Of a validation: what was asked for could not be done, and a gate must stay shut."""
    monkeypatch.setattr(Device, "auto", classmethod(lambda _: Device.CPU))
    assert call(monkeypatch, "validate", "warm", "--device", "cuda", "--output", str(tmp_path)) == 3
    said = capsys.readouterr().out
    assert "no GPU was found, and one was asked for" in said
    assert (tmp_path / "report.html").exists()


def test_doctor(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(monkeypatch, "doctor") == 0
    assert "The main job can run here." in capsys.readouterr().out


def test_doctor_names_what_is_missing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(diagnosis, "PINNED", {"sglang": "0.0.1", "sglang-of-tomorrow": "9.9"})
    assert call(monkeypatch, "doctor") == 1
    said = capsys.readouterr().out
    assert "0.5.12.post1, but the harness is made for 0.0.1" in said
    assert "The main job can't run here: sglang, sglang-of-tomorrow." in said
