"""Groups of tests that share a worker, also after a worker died: what pytest-xdist 3.8.0 doesn't do."""

from typing import Any

from xdist.scheduler import LoadGroupScheduling  # type: ignore[import-untyped]


class GroupScheduling(LoadGroupScheduling):  # type: ignore[misc]
    """`--dist loadgroup` in which a test that its worker died of isn't run again, and all others are.

    pytest-xdist 3.8.0 hands it to the next worker, which dies too, until no restarts are left (pytest-xdist's pull
    request 1371), can wait for ever on a replacement (its issues 1323 and 1327), and fails where a worker dies while
    another's replacement is still starting. With pytest 9.2 it doesn't see groups at all (its issue 1386), so they are
    handed over in `groups`.
    """

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.groups: dict[str, str] = {}
        """By test; a test that has none is a group of its own."""

    def remove_node(self, node: Any) -> str | None:
        """A worker is gone; returns the test that it died of, and puts the others of its groups back."""
        workload: dict[str, dict[str, bool]] = self.assigned_work.pop(node)
        pending = (
            (group, test) for group, unit in workload.items() for test, completed in unit.items() if not completed
        )
        group, died_of = next(pending, ("", None))
        if died_of is None:
            return None
        workload[group][died_of] = True
        # a group without tests left would use up its worker's turn to ask for more
        self.workqueue.update({name: unit for name, unit in workload.items() if not all(unit.values())})
        for other in self.nodes:
            self._reschedule(other)
        return died_of

    def schedule(self) -> None:
        """Hand out groups; a worker runs a test once it knows the next one, or that there is none."""
        super().schedule()
        for node in self.nodes:
            self._reschedule(node)

    def _reschedule(self, node: Any) -> None:
        """Give a worker more, if it has collected: a replacement that is still starting gets its share when it has."""
        if node in self.registered_collections:
            super()._reschedule(node)

    def _split_scope(self, nodeid: str) -> str:
        return self.groups.get(nodeid, nodeid)
