"""The in-process driver face: loading, sync and async, and what a malformed answer becomes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from rho_conformance.driver import Hello, connect, load_driver
from rho_conformance.errors import DriverError, UsageError
from rho_conformance.targets import resolve

HELLO = {
    "protocol": 1,
    "name": "fake",
    "version": "0",
    "profiles": ["rho"],
    "time": "virtual",
    "deterministic": True,
}
SEEN = {"seq": 1, "step": 1, "at_ms": 0, "Started": {"session": "s1", "run": "r1"}}
ANSWER = {"observations": [SEEN], "waiting_on": ["model", "tool:A", "host:q"], "facts": {"busy": True}}


class Plain:
    """Answers what it is told to answer."""

    def __init__(self, answer: Any = ANSWER, hello: Any = HELLO, opened: Any = None) -> None:
        self.answer, self.greeting, self.opened = answer, hello, {} if opened is None else opened

    def hello(self) -> Any:
        return self.greeting

    def open(self, config: dict[str, Any]) -> Any:
        return self.opened

    def perform(self, stimuli: list[dict[str, Any]]) -> Any:
        return self.answer

    def close(self) -> None:
        return None


class Async:
    """Remembers the loop of each call, and keeps a task that lives in it."""

    def __init__(self) -> None:
        self.loops: list[asyncio.AbstractEventLoop] = []
        self.ticks: asyncio.Queue[int] = asyncio.Queue()
        self.task: asyncio.Task[None] | None = None

    async def hello(self) -> dict[str, Any]:
        return dict(HELLO)

    async def open(self, config: dict[str, Any]) -> dict[str, Any]:
        self.loops.append(asyncio.get_running_loop())
        self.task = asyncio.create_task(self._tick())
        return {}

    async def _tick(self) -> None:
        await self.ticks.put(7)

    async def perform(self, stimuli: list[dict[str, Any]]) -> dict[str, Any]:
        self.loops.append(asyncio.get_running_loop())
        return {**ANSWER, "facts": {"revision": await self.ticks.get()}}

    async def close(self) -> None:
        self.loops.append(asyncio.get_running_loop())


def test_a_sync_driver_is_passed_through() -> None:
    with connect(Plain()) as driver:
        assert driver.hello().name == "fake"
        assert driver.open({}) is None
        assert driver.perform([{"start": "hi"}]) == ANSWER


def test_an_async_driver_keeps_one_loop_for_its_life() -> None:
    fake = Async()
    with connect(fake) as driver:
        driver.open({})
        assert driver.perform([])["facts"] == {"revision": 7}
    assert len({id(loop) for loop in fake.loops}) == 1
    assert fake.loops[0].is_closed()


def test_an_exception_of_the_driver_is_a_driver_error() -> None:
    class Broken(Plain):
        def perform(self, stimuli: list[dict[str, Any]]) -> Any:
            raise KeyError("gone")

    with connect(Broken()) as driver, pytest.raises(DriverError, match="perform raised KeyError: 'gone'"):
        driver.perform([])


def test_a_missing_method_is_a_driver_error() -> None:
    with pytest.raises(DriverError, match="has no attribute 'hello'"):
        connect(object()).hello()  # type: ignore[arg-type]


def test_a_refused_configuration_gives_the_name() -> None:
    assert connect(Plain(opened={"error": "InvalidConfiguration"})).open({}) == "InvalidConfiguration"


def test_a_new_world_counts_steps_from_one() -> None:
    driver = connect(Plain())
    driver.open({})
    driver.perform([])
    driver.open({})
    driver.perform([])
    with pytest.raises(DriverError, match="perform number 2"):
        driver.perform([])


def observed(**changes: Any) -> dict[str, Any]:
    return {**ANSWER, "observations": [{**SEEN, **changes}]}


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (None, "perform must be a map"),
        ({"waiting_on": [], "facts": {}}, "without 'observations'"),
        ({**ANSWER, "observations": {}}, "observations must be a list"),
        (observed(seq="1"), r"observations\[0\].seq must be an integer"),
        (observed(step=2), r"step is 2, but this is perform number 1"),
        (observed(at_ms=True), "at_ms must be an integer"),
        (observed(Completed={}), "must hold one name"),
        (observed(Started="r1"), r"observations\[0\].Started must be a map"),
        (observed(Started={"run": object()}), "is a object, not plain JSON"),
        (observed(Started={"run": {1: 2}}), "has the key 1"),
        ({**ANSWER, "observations": [SEEN, SEEN]}, "seq is 1 after 1"),
        ({**ANSWER, "waiting_on": ["modell"]}, "'modell'"),
        ({**ANSWER, "waiting_on": ["tool:"]}, "'tool:'"),
        ({**ANSWER, "waiting_on": [None]}, "waiting_on must hold texts"),
        ({**ANSWER, "facts": {"busy": 1}}, "facts.busy must be a bool"),
        ({**ANSWER, "facts": {"revision": True}}, "facts.revision must be a int"),
        ({**ANSWER, "facts": {"history": [{"human": "x"}]}}, r"facts.history\[0\]"),
        ({**ANSWER, "facts": {"sessions": {"s2": {"state": 3}}}}, "facts.sessions.s2.state"),
    ],
)
def test_a_malformed_answer_says_where(answer: Any, message: str) -> None:
    driver = connect(Plain(answer))
    driver.open({})
    with pytest.raises(DriverError, match=message):
        driver.perform([])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"protocol": 2}, "hello.protocol is 2"),
        ({"name": None}, "hello.name must be a text"),
        ({"profiles": []}, "hello.profiles must name some"),
        ({"profiles": ["rh"]}, "hello.profiles must name some"),
        ({"capabilities": "*"}, "hello.capabilities must be a list"),
        ({"time": "wall"}, "hello.time must be one of"),
        ({"deterministic": "yes"}, "hello.deterministic"),
    ],
)
def test_a_malformed_hello_says_where(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(DriverError, match=message):
        Hello.parse({**HELLO, **changes})


def test_a_malformed_open_is_a_driver_error() -> None:
    with pytest.raises(DriverError, match="open must answer"):
        connect(Plain(opened={"ok": True})).open({})


def test_capabilities_are_wildcards_and_absent_means_all() -> None:
    some = Hello.parse({**HELLO, "capabilities": ["start", "provider.*"]})
    assert some.supports("provider.delta")
    assert not some.supports("steer")
    assert Hello.parse(HELLO).supports("anything")


def test_one_settle_is_proof_only_where_nothing_moves_by_itself() -> None:
    assert Hello.parse(HELLO).exact
    assert not Hello.parse({**HELLO, "deterministic": False}).exact
    assert not Hello.parse({**HELLO, "time": "real"}).exact


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("python:nowhere_at_all:f", "no module 'nowhere_at_all'"),
        ("python:json:nothing", "has no 'nothing'"),
        ("python:json:__name__", "is not callable"),
        ("python:json", "expected python:MODULE:FACTORY"),
        ("exec:./agent", "exec:"),
        ("no-such-thing", "unknown target 'no-such-thing'; known: asyncio, core"),
        ("chaos:often", "'often' is not an integer"),
    ],
)
def test_a_target_that_means_nothing_is_a_usage_error(target: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        resolve(target)


def test_python_targets_load_the_factory() -> None:
    made: object = load_driver("python:collections:OrderedDict")()
    assert made == {}
    assert resolve("core")().hello()
