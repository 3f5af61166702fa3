"""Moves made into operations, with the threshold in view."""

from collections.abc import Sequence

from harness.configuration import EngineConfig
from harness.program import Abort, Drain, Flush, Operation, Retract, Step
from harness.search.batch_model import MOST_STEPS, BatchModel
from harness.search.moves import CROSSING, End, Ending, Kind, Move, Shape
from harness.search.requests import submission
from harness.search.upstream import outruns_context

REQUESTS_BEYOND = 6
"""Requests that a program submits at most beyond those that may run at once, or that cross the threshold once."""
FEW = 2
"""Requests that are enough for a spec step."""
RESERVE = 3
"""Requests of these that are left for batches at or below the threshold."""
LOW_STARTS = range(12, 112)
"""Amounts, most of them, at which a first submission stays at or below the threshold, for a spec step to come first."""
EARLY = (End.STOP_TOKEN, End.END_OF_SEQUENCE)
"""The first request of such a submission may end before the batch is as large as it was to be."""
FINE = 6
"""Of more steps than these a move's pause doesn't tell each."""
PAUSE_UNIT = 32
"""Each so much of a move's pause is a step more than the move needs."""


def steer(config: EngineConfig, moves: Sequence[Move], ending: Ending = Ending.NOTHING) -> tuple[Operation, ...]:
    """The operations that moves come to."""
    steering = _Steering(config)
    for move in moves:
        steering.make(move)
    steering.end(ending)
    return tuple(steering.operations)


class _Steering:
    """Follows the batch while it decides what a move means."""

    def __init__(self, config: EngineConfig) -> None:
        self.operations: list[Operation] = []
        self._model = BatchModel(config)
        self._config = config
        most, threshold = config.max_running_requests, self._model.most_speculating
        largest = config.graphs[-1] if config.graphs else threshold
        over = min(threshold + 1, most)
        self._most = max(most, threshold + over) + REQUESTS_BEYOND
        # A single request may reach the context's end where the buffers of a larger captured graph give it room.
        self._lone = largest > 1 and bool(config.graphs)
        self._over = {
            Kind.CROSS: over,
            Kind.CROSS_WAITING: over,
            Kind.CROSS_WIDELY: min(max(over, largest + 1), most),
            Kind.CROSS_FULLY: most + 2,
        }

    def make(self, move: Move) -> None:
        """Add the operations of one move."""
        if move.kind in CROSSING:
            self._cross(move)
        else:
            self._event(move)

    def end(self, ending: Ending) -> None:
        """Add the operations after the last move."""
        if ending is not Ending.NOTHING:
            self._drain()
        if ending is Ending.FLUSH:
            self.operations += [Flush(), Step()]

    def _event(self, move: Move) -> None:
        match move.kind:
            case Kind.SUBMIT:
                low_start = self._model.submitted == 0 and move.amount in LOW_STARTS
                most = self._model.most_speculating if low_start else self._config.max_running_requests
                self._submit(min(move.amount + 1, most), move.shape, reserve=RESERVE)
            case Kind.ABORT:
                self._abort(move.amount)
            case Kind.RETRACT | Kind.RETRACT_AT_END:
                self._retract(move)
            case Kind.FLUSH:
                self.operations.append(Flush())
            case Kind.DRAIN:
                self._drain()
            case Kind.CLOSE:
                self._close(move)
        self._pause(move.pause)

    def _cross(self, move: Move) -> None:
        """Up if the last decode step was a spec step; else down, or to a batch that can have one."""
        size, threshold = self._model.size, self._model.most_speculating
        if size > threshold:
            self._down(move)
        elif self._model.speculated:
            needed = self._over[move.kind] - size + int(move.shape.end in EARLY)
            self._submit(min(move.amount + 1, needed), move.shape, reserve=RESERVE)
            self._pause(move.pause)
        else:
            target = threshold if move.kind is Kind.CROSS else min(threshold, FEW)
            self._submit(min(move.amount + 1, max(1, target - size)), move.shape, reserve=0)
            self._pause(move.pause)

    def _close(self, move: Move) -> None:
        if self._model.speculated and not self._model.switched_off:
            needed = self._over[Kind.CROSS] - self._model.size + int(move.shape.end in EARLY)
            self._submit(min(move.amount + 1, needed), move.shape, reserve=1)
        elif self._model.speculated is False:
            self._drain()
            if self._model.speculated is False:
                self._submit(1, move.shape, reserve=0)

    def _down(self, move: Move) -> None:
        threshold = self._model.most_speculating
        remaining = {Kind.CROSS: threshold, Kind.CROSS_WIDELY: 1, Kind.CROSS_FULLY: 0}
        if move.kind in remaining:
            for _ in range(min(move.amount + 1, self._model.size - remaining[move.kind])):
                self._abort(-1)
        self._pause(move.pause, self._model.steps_until(lambda model: model.size <= threshold))

    def _submit(self, count: int, shape: Shape, reserve: int) -> None:
        count = min(count, self._most - reserve - self._model.submitted)
        submit = submission(self._config, shape, count, self._lone) if count > 0 else None
        if submit is not None:
            self._lone = self._lone and not outruns_context(self._config, submit)
            self.operations.append(submit)
            self._model.submit(submit)

    def _abort(self, which: int) -> None:
        abortable = [request for request in self._model.present if request.abortable]
        if abortable:
            number = abortable[which % len(abortable) if which >= 0 else -1].number
            self.operations.append(Abort(request=number))
            self._model.abort(number)

    def _retract(self, move: Move) -> None:
        if move.kind is Kind.RETRACT_AT_END:
            self._step(self._model.steps_until(_has_end) % MOST_STEPS)
        self.operations.append(Retract())
        self._model.retract()

    def _drain(self) -> None:
        if self._model.submitted:
            self.operations.append(Drain())
            self._model.drain()

    def _pause(self, pause: int, needed: int | None = None) -> None:
        """As many steps as `pause` says, at most those that are needed and a few; by default until all are prefilled.

        Few steps are wanted after few, many after many: so a smaller pause is never a longer one.
        """
        if needed is None:
            needed = self._model.steps_until(lambda model: model.settled) + 1
        needed %= MOST_STEPS
        self._step(min(pause * max(1, needed // FINE), needed + pause // PAUSE_UNIT))

    def _step(self, count: int) -> None:
        if count == 0:
            return
        last = self.operations[-1] if self.operations else None
        if isinstance(last, Step):
            self.operations[-1] = Step(count=last.count + count)
        else:
            self.operations.append(Step(count=count))
        for _ in range(count):
            self._model.step()


def _has_end(model: BatchModel) -> bool:
    return any(request.ended_at is not None for request in model.running)
