"""When to speculate: a threshold on the batch size, with hysteresis if wanted."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Policy:
    """Speculation is off above `threshold` running requests, and on again at `threshold - hysteresis` or fewer.

    Batch sizes are numbers of requests in the decode batch, exact, not padded to a captured size.
    """

    threshold: int
    hysteresis: int = 0

    def __post_init__(self) -> None:
        if self.threshold < 1:
            raise ValueError(f"the threshold must be a positive number of requests, not {self.threshold}")
        if not 0 <= self.hysteresis < self.threshold:
            raise ValueError(
                f"the hysteresis must be from 0 to threshold - 1 = {self.threshold - 1} requests, not {self.hysteresis}"
            )

    @property
    def resumes_at(self) -> int:
        """Largest batch size at which speculation comes back."""
        return self.threshold - self.hysteresis


class Switch:
    """The policy's memory: whether the last decode step speculated."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.reset()

    def reset(self) -> None:
        """As after start: speculating."""
        self.speculating = True
        """Whether the last decode step did."""

    def speculates(self, batch_size: int) -> bool:
        """Decide for the next decode step, of `batch_size` requests."""
        most = self.policy.threshold if self.speculating else self.policy.resumes_at
        self.speculating = batch_size <= most
        return self.speculating
