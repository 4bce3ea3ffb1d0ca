"""Policies: default deny, patterns, a host that decides, and what is remembered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import anyio
import pytest

from rho_adapters import ToolFailure, ToolHost
from rho_adapters.host import Authorizer
from rho_adapters.tools import AllowList, AskHost, Decision, Rule, tool
from rho_core.messages import ToolCall

pytestmark = pytest.mark.anyio

READ = ToolCall("c1", "read", "{}")
WRITE = ToolCall("c2", "write", "{}")


class Script:
    """A host that gives these decisions in order, and remembers what it was asked."""

    def __init__(self, *decisions: Decision) -> None:
        self.asked: list[tuple[str, str]] = []
        self._decisions = list(decisions)

    async def __call__(self, call: ToolCall, capability: str) -> Decision:
        self.asked.append((call.name, capability))
        await anyio.lowlevel.checkpoint()
        return self._decisions.pop(0)


async def test_nothing_is_allowed_by_default() -> None:
    policy: Authorizer = AllowList()
    assert await policy.authorize(READ, "fs.read:a") == "no policy allows it"


@pytest.mark.parametrize(
    ("call", "capability", "reason"),
    [
        (READ, "fs.read:/srv/a", None),
        (READ, "fs.read:/srv/a/b", None),
        (READ, "fs.read:/etc/passwd", "no policy allows it"),
        (READ, "FS.READ:/srv/a", "no policy allows it"),
        (READ, "fs.read:/srv/key.pem", "a policy forbids it"),
        (WRITE, "fs.write:/tmp/a", None),
        (READ, "fs.write:/tmp/a", "no policy allows it"),
    ],
)
async def test_patterns_on_capability_and_tool(call: ToolCall, capability: str, reason: str | None) -> None:
    policy = AllowList(["fs.read:/srv/*", Rule("fs.write:*", tool="wr*")], deny=["*.pem"])
    assert await policy.authorize(call, capability) == reason


def test_one_text_is_no_list_of_rules() -> None:
    with pytest.raises(TypeError):
        AllowList("*")


async def test_once_asks_again_and_always_does_not() -> None:
    host = Script(Decision.once(), Decision.always())
    policy: Authorizer = AskHost(host)
    assert [await policy.authorize(READ, "net") for _ in range(4)] == [None] * 4
    assert host.asked == [("read", "net")] * 2


async def test_deny_asks_again_and_never_does_not() -> None:
    host = Script(Decision.deny("not now"), Decision.never("not here"))
    policy = AskHost(host)
    reasons = [await policy.authorize(READ, "net") for _ in range(4)]
    assert reasons == ["not now", "not here", "not here", "not here"]
    assert len(host.asked) == 2


async def test_memory_is_per_tool_and_capability_and_can_be_cleared() -> None:
    host = Script(Decision.always(), Decision.deny(), Decision.deny(), Decision.deny())
    policy = AskHost(host)
    assert await policy.authorize(READ, "net") is None
    assert await policy.authorize(WRITE, "net") == "the host denied it"
    assert await policy.authorize(READ, "disk") == "the host denied it"
    assert policy.remembered == {("read", "net"): Decision.always()}
    policy.forget()
    assert await policy.authorize(READ, "net") == "the host denied it"
    assert len(host.asked) == 4


async def test_rules_come_before_the_host() -> None:
    host = Script(Decision.once())
    policy = AskHost(host, rules=AllowList(["fs.read:*"], deny=["fs.delete:*"]))
    assert await policy.authorize(READ, "fs.read:a") is None
    assert await policy.authorize(WRITE, "fs.delete:a") == "a policy forbids it"
    assert host.asked == []
    assert await policy.authorize(WRITE, "fs.write:a") is None
    assert host.asked == [("write", "fs.write:a")]


async def test_two_calls_at_once_are_one_question() -> None:
    host = Script(Decision.always())
    policy = AskHost(host)
    reasons: list[str | None] = []

    async def authorize() -> None:
        reasons.append(await policy.authorize(READ, "net"))

    async with anyio.create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(authorize)
    assert (reasons, len(host.asked)) == ([None] * 5, 1)


async def _raises(call: ToolCall, capability: str) -> Decision:
    raise RuntimeError("token=hunter2")


async def _says_yes(call: ToolCall, capability: str) -> Decision:
    return cast(Decision, "yes")


async def _silent(call: ToolCall, capability: str) -> Decision:
    await anyio.sleep_forever()
    raise AssertionError


@pytest.mark.parametrize(
    ("decide", "reason"),
    [
        (_raises, "the decision failed with RuntimeError"),
        (_says_yes, "the decision was a str, not a Decision"),
        (_silent, "nobody decided in time"),
    ],
)
async def test_a_mishap_denies(decide: Callable[..., Any], reason: str) -> None:
    policy = AskHost(decide, timeout_s=0.01 if decide is _silent else None)
    assert await policy.authorize(READ, "net") == reason
    assert policy.remembered == {}


async def test_a_cancelled_question_leaves_nothing_behind() -> None:
    asked = anyio.Event()
    decisions = Script(Decision.once())

    async def decide(call: ToolCall, capability: str) -> Decision:
        if not asked.is_set():
            asked.set()
            await anyio.sleep_forever()
        return await decisions(call, capability)

    policy = AskHost(decide)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(policy.authorize, READ, "net")
        await asked.wait()
        tasks.cancel_scope.cancel()
    assert policy.remembered == {}
    with anyio.fail_after(5):
        assert await policy.authorize(READ, "net") is None


async def test_through_the_runtime() -> None:
    ran: list[str] = []

    @tool(capability=lambda a: f"fs.delete:{a['path']}")
    async def delete(path: str) -> str:
        ran.append(path)
        return "gone"

    async with ToolHost([delete]) as host:
        with pytest.raises(ToolFailure, match=r"^fs.delete:a capability denied: no policy allows it$"):
            await host.call("delete", {"path": "a"})
    async with ToolHost([delete], authorizer=AskHost(Script(Decision.once(), Decision.deny("keep it")))) as host:
        assert await host.call("delete", {"path": "b"}) == "gone"
        with pytest.raises(ToolFailure, match=r"^fs.delete:c capability denied: keep it$"):
            await host.call("delete", {"path": "c"})
    assert ran == ["b"]
