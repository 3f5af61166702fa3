"""Groups of tests on workers that die: each test is begun once, and no worker waits for ever."""

from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from xdist.remote import Producer

from harness.pytesting.scheduling import GroupScheduling


class Worker:
    """What a scheduler sees of a worker, which begins a test once it knows the next, or that there is none."""

    def __init__(self) -> None:
        self.queue: list[int] = []
        self.shutting_down = False
        self.gateway = SimpleNamespace(id="gw")

    def send_runtest_some(self, indices: list[int]) -> None:
        self.queue += indices

    def shutdown(self) -> None:
        self.shutting_down = True

    @property
    def may_act(self) -> bool:
        return len(self.queue) > 1 or self.shutting_down


class Session:
    """What pytest-xdist does with a scheduler, an event at a time."""

    def __init__(self, groups: dict[str, str], deadly: set[int], workers: int) -> None:
        options = SimpleNamespace(loadscopereorder=True)
        config: Any = SimpleNamespace(getvalue=lambda name: ["popen"] * workers, option=options)
        self.scheduling: Any = GroupScheduling(config, Producer("", enabled=False))
        self.scheduling.groups = groups
        self.tests, self.deadly = list(groups), deadly
        self.begun: list[str] = []
        self.died_of: list[str] = []
        self.starting: list[Worker] = []
        self.running: list[Worker] = []
        for _ in range(workers):
            self.start()

    def start(self) -> None:
        worker = Worker()
        self.scheduling.add_node(worker)
        self.starting.append(worker)

    def able(self) -> list[Worker]:
        return [*self.starting, *(worker for worker in self.running if worker.may_act)]

    def act(self, worker: Worker) -> None:
        if worker in self.starting:
            self.collected(worker)
        elif worker.queue:
            self.run(worker)
        else:
            self.finished(worker)
        if self.scheduling.tests_finished:
            for node in self.scheduling.nodes:
                node.shutdown()

    def collected(self, worker: Worker) -> None:
        self.starting.remove(worker)
        self.running.append(worker)
        self.scheduling.add_node_collection(worker, self.tests)
        if self.scheduling.collection_is_completed:
            self.scheduling.schedule()

    def run(self, worker: Worker) -> None:
        number = worker.queue.pop(0)
        self.begun.append(self.tests[number])
        if number in self.deadly:
            self.running.remove(worker)
            self.died_of.append(self.scheduling.remove_node(worker))
            self.start()
        else:
            self.scheduling.mark_test_complete(worker, number)

    def finished(self, worker: Worker) -> None:
        self.running.remove(worker)
        if worker in self.scheduling.nodes:
            assert self.scheduling.remove_node(worker) is None


@given(
    groups=st.lists(st.integers(0, 4), min_size=1, max_size=12),
    deadly=st.sets(st.integers(0, 11), max_size=4),
    workers=st.integers(1, 3),
    data=st.data(),
)
def test_each_test_is_begun_once(groups: list[int], deadly: set[int], workers: int, data: st.DataObject) -> None:
    tests = [f"test_{number}" for number in range(len(groups))]
    session = Session(dict(zip(tests, map(str, groups), strict=True)), deadly, workers)
    while able := session.able():
        session.act(able[data.draw(st.integers(0, len(able) - 1))])
    assert sorted(session.begun) == sorted(tests)
    assert sorted(session.died_of) == sorted(tests[number] for number in deadly if number < len(tests))
    assert not session.running
