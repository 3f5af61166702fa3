"""What a validation is to do, as one value; its fingerprint says whether an interrupted one can go on."""

import hashlib
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

import harness
from harness.configuration import DEFAULT_SETTING, EngineConfig, Strategy, Toggle, Worker
from harness.engine.device import Device
from harness.isolation.child import Limits
from harness.patches.beside import files
from harness.patches.changed import changed_files
from harness.patches.stack import Patch, entries, file_named, is_plugin, sources, title
from harness.patches.workers import CASES
from harness.validation.profile import Profile

HARNESS = Path(harness.__file__).parent
FIXTURES = HARNESS.parent / "fixtures"
LEAST_RUNNING = 17
"""One more than the largest size that is captured."""
KV_TOKENS_EACH = 256


def workers_of(only: Worker | None) -> tuple[Worker, ...]:
    """The workers to test: the one that a patch is for, or both."""
    return (Worker.V1, Worker.V2) if only is None else (only,)


@dataclass(frozen=True, slots=True)
class Plan:
    """A validation."""

    patch: Patch
    """What is tested: its files are copies, which nobody edits meanwhile (`harness.patches.frozen`)."""
    device: Device
    profile: Profile
    output: Path
    """Folder of the report."""
    workers: tuple[Worker, ...] = (Worker.V1, Worker.V2)
    threshold: int = 5
    """Of the stages that aren't given one by a case or the grid."""
    threshold_setting: str = DEFAULT_SETTING
    strategy: Strategy = "warm"
    """Of the toggle, where the patch is one of it."""
    seed: int = 0
    at_once: int = 2
    """Programs that run side by side, spread over `gpus`."""
    gpus: tuple[str | None, ...] = (None,)
    most_skipped: float = 0.1
    """Share of what checks look at that may be left out, 0 to 1."""
    most_step_ratio: float = 1.5
    """Most that a step may take, against the engine that it should be as quick as; judged on a GPU."""
    limits: Limits = field(default_factory=lambda: Limits(boot_seconds=300.0))
    title: str = ""
    """The patch as a person named it."""

    def __post_init__(self) -> None:
        if not self.title:
            object.__setattr__(self, "title", title(self.patch))

    @property
    def modules(self) -> tuple[str, ...]:
        """Plugins that are named by their module, whose content isn't known."""
        return tuple(entry for entry in entries(self.patch) if is_plugin(entry) and file_named(entry) is None)

    @property
    def changed(self) -> tuple[str, ...]:
        """The files of SGLang that it changes."""
        return changed_files(sources(self.patch))

    def config(self, worker: Worker, **changes: object) -> EngineConfig:
        """The ordinary configuration under test."""
        given: dict[str, object] = {
            "worker": worker,
            "toggle": self.toggle(self.threshold),
            "patch": self.patch,
            "threshold_setting": self.threshold_setting,
            "max_running_requests": max(LEAST_RUNNING, 2 * self.threshold),
            "kv_tokens": max(4096, 2 * self.threshold * KV_TOKENS_EACH),
            **changes,
        }
        return EngineConfig.model_validate(given)

    def toggle(self, threshold: int) -> Toggle:
        """The toggle under test, with another threshold."""
        return Toggle(threshold=threshold, strategy=self.strategy)

    @property
    def fingerprint(self) -> str:
        """Of all that decides what the stages do: the patch's content, SGLang, this harness, its cases and models."""
        own = [*sorted(HARNESS.rglob("*.py")), *sorted(CASES.rglob("program.json")), *sorted(FIXTURES.rglob("*.py"))]
        content = [file.read_bytes() for file in (*files(self.patch).values(), *own)]
        parts = (self.title, *content, self.device, self.profile, self.workers, self.threshold, self.seed)
        more = (self.threshold_setting, self.strategy, self.most_skipped, self.most_step_ratio)
        releases = (version("sglang"), version("torch"))
        return hashlib.sha256(repr((*parts, *more, *releases)).encode()).hexdigest()[:16]
