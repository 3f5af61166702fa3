"""The stages of a validation on disk, each as it ends: what an interrupted one goes on from."""

import json

from filelock import FileLock, Timeout
from pydantic import ValidationError

from harness.errors import UsageError
from harness.validation.plan import Plan
from harness.validation.stage import INTERRUPTED, Stage, Status

FILE, LOCK = "stages.jsonl", ".lock"


class Record:
    """A line for the plan's fingerprint, and one for each stage."""

    def __init__(self, plan: Plan, resume: bool) -> None:
        """Begin a new one, or read the one that is there; raises UsageError where that doesn't fit, or can't be had."""
        self._file = plan.output / FILE
        self._lock = FileLock(plan.output / LOCK, blocking=False)
        self.stages: dict[str, Stage] = {}
        """By name, those that ended: what stayed unproven is run again, what failed has failed."""
        self.begun: dict[str, Stage] = {}
        """By name, those that were interrupted, with what they had done by then."""
        try:
            plan.output.mkdir(parents=True, exist_ok=True)
            self._lock.acquire()
            if resume:
                self._read(plan)
            else:
                self._file.write_text(json.dumps({"fingerprint": plan.fingerprint}) + "\n", encoding="utf-8")
        except Timeout:
            raise UsageError(f"--output {plan.output}: another validation is at work there; give another") from None
        except OSError as error:
            raise UsageError(f"--output {plan.output}: {error.strerror}") from None

    def close(self) -> None:
        """Let another validation have the folder."""
        self._lock.release()

    def add(self, stage: Stage) -> None:
        """Write a stage down; raises UsageError where that can't be done."""
        self.stages[stage.name] = stage
        try:
            with self._file.open("a", encoding="utf-8") as file:
                file.write(stage.model_dump_json() + "\n")
        except OSError as error:
            raise UsageError(f"{self._file}: {error.strerror}: free some space, then --resume") from None

    def _read(self, plan: Plan) -> None:
        if not self._file.is_file():
            raise UsageError(f"--resume: {plan.output} holds no validation that was begun; leave --resume out")
        if plan.modules:
            raise UsageError(f"--resume: whether {plan.modules[0]} has changed can't be told: leave --resume out")
        try:
            first, *lines = self._file.read_text(encoding="utf-8").splitlines() or [""]
            fingerprint = json.loads(first)["fingerprint"]
            stages = [Stage.model_validate_json(line) for line in lines if line.endswith("}")]
        except (ValueError, KeyError, TypeError, ValidationError):
            raise UsageError(f"--resume: {self._file} can't be read: leave --resume out") from None
        if fingerprint != plan.fingerprint:
            other = "another patch, other options or another harness"
            raise UsageError(f"--resume: {plan.output} is of {other}: leave --resume out")
        self.stages = {stage.name: stage for stage in stages if stage.status in (Status.PASSED, Status.FAILED)}
        left = [stage for stage in stages if stage.name not in self.stages]
        self.begun = {stage.name: stage for stage in left if stage.said == INTERRUPTED}
