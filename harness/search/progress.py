"""What a search has done so far, counted as it goes; shared by its threads."""

import threading
from collections import Counter
from dataclasses import dataclass, field
from time import monotonic

from harness.configuration import EngineConfig
from harness.isolation.ran import Ran
from harness.search.labels import CROSSINGS


@dataclass(slots=True)
class Progress:
    """Counts of one search."""

    started: float = field(default_factory=monotonic)
    programs: int = 0
    steps: int = 0
    crossing: int = 0
    """Programs that switched speculation off or on."""
    engine_seconds: float = 0.0
    labels: Counter[str] = field(default_factory=Counter)
    """How often each thing was reached (`harness.search.labels`)."""
    skipped: Counter[tuple[str, str]] = field(default_factory=Counter)
    """How often each check could not be evaluated, and why."""
    looked: Counter[str] = field(default_factory=Counter)
    """Moments that each check looked at."""
    looked_in_part: Counter[str] = field(default_factory=Counter)
    """Of these, those in which it left something out."""
    answered: Counter[str] = field(default_factory=Counter)
    """How often each check that may lack a right answer had one to compare with."""
    imported: set[str] = field(default_factory=set)
    """Of the files of SGLang that a diff changes, those that some process has imported."""
    configurations: set[EngineConfig] = field(default_factory=set)
    refused: dict[EngineConfig, str] = field(default_factory=dict)
    """Configurations that SGLang refused, with its reason."""
    failure: Ran | None = None
    """The simplest so far."""
    doing: str = "starting"
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def seconds(self) -> float:
        """Since the search began."""
        return monotonic() - self.started

    def count(self, ran: Ran) -> None:
        """One more run."""
        with self._lock:
            self.programs += 1
            self.steps += ran.steps
            self.engine_seconds += ran.engine_seconds
            self.labels += ran.labels
            self.skipped += ran.skipped
            self.looked += ran.looked
            self.looked_in_part += ran.looked_in_part
            self.answered += ran.answered
            self.imported |= ran.imported
            self.crossing += any(ran.labels[label] for label in CROSSINGS)
            self.configurations.add(ran.program.config)

    def refuse(self, config: EngineConfig, reason: str) -> None:
        """SGLang doesn't take a configuration of the grid."""
        with self._lock:
            self.refused[config] = reason
