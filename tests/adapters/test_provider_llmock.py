"""An independent server judges the providers: its protocol, its faults, its verdict of how we took them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from llmock.pytest_plugin import LLMock

from rho_adapters import Rho, RunFailed, ToolContext
from rho_adapters.clock import SystemClock
from rho_adapters.providers import AnthropicMessages, OpenAIChat, OpenAIResponses
from rho_adapters.providers._http import HttpProvider
from rho_core.errors import Error, ErrorName, ProviderErrorKind
from rho_core.events import RunOutcome
from tests.adapters.scripted import Does

pytestmark = pytest.mark.anyio
Make = Callable[[LLMock], HttpProvider]
KEY = "llmock-test-key"

PROVIDERS: dict[str, Make] = {
    "chat": lambda m: OpenAIChat("gpt-4o", api_key=KEY, base_url=m.base_url("openai"), read_timeout_s=0.5),
    "responses": lambda m: OpenAIResponses("gpt-4o", api_key=KEY, base_url=m.base_url("openai"), read_timeout_s=0.5),
    "anthropic": lambda m: AnthropicMessages(
        "claude-sonnet-4", api_key=KEY, base_url=m.base_url("anthropic"), read_timeout_s=0.5
    ),
}


@pytest.fixture(params=list(PROVIDERS))
def make(request: pytest.FixtureRequest) -> Make:
    return PROVIDERS[request.param]


class Hurried(SystemClock):
    """Waits the tenth part: long enough that the server can tell a wait from none."""

    async def sleep_ms(self, milliseconds: int) -> None:
        await super().sleep_ms(milliseconds // 10)


async def failure_of(mock: LLMock, make: Make) -> Error:
    """The error of a run that fails."""
    async with make(mock) as provider, Rho(provider, clock=Hurried()) as rho:
        with pytest.raises(RunFailed) as failed:
            await rho.session("s").complete("Tell me something about the sea, please.")
    return failed.value.error


async def complete(mock: LLMock, make: Make, tool: Does | None = None) -> RunOutcome:
    async with make(mock) as provider, Rho(provider, [tool] if tool else [], clock=Hurried()) as rho:
        return await rho.session("s").complete("Tell me something about the sea, please.")


async def test_an_answer_and_its_usage(llmock: LLMock, make: Make) -> None:
    llmock.reply("The sea is wide.")
    outcome = await complete(llmock, make)
    assert outcome.text == "The sea is wide."
    assert (outcome.usage.input_tokens or 0) > 0 and (outcome.usage.output_tokens or 0) > 0
    llmock.assert_resilient(strict=True)


async def test_a_tool_call_goes_round(llmock: LLMock, make: Make) -> None:
    async def weather(context: ToolContext) -> str:
        return context.call.arguments

    tool = Does("weather", weather)
    llmock.call_tool("weather", {"city": "Paris"}).reply("7C")
    outcome = await complete(llmock, make, tool)
    assert (outcome.text, len(tool.ran), len(llmock.requests)) == ("7C", 1, 2)
    llmock.assert_resilient(strict=True)


async def test_broken_streams_are_taken_again(llmock: LLMock, make: Make) -> None:
    """At most one fault counts as malformed here; the disconnection is a failure of its own."""
    llmock.disconnect(after_chunks=2).truncate(after_chunks=2).reply("whole", times=None)
    outcome = await complete(llmock, make)
    assert (outcome.text, len(llmock.requests)) == ("whole", 3)
    llmock.assert_resilient()


async def test_a_corrupt_stream_is_taken_again(llmock: LLMock, make: Make) -> None:
    llmock.corrupt(after_chunks=2).reply("whole", times=None)
    assert (await complete(llmock, make)).text == "whole"
    llmock.assert_resilient()


async def test_a_stall_ends(llmock: LLMock, make: Make) -> None:
    llmock.stall(after_chunks=2, seconds=1.5).reply("whole", times=None)
    assert (await complete(llmock, make)).text == "whole"
    llmock.assert_resilient()


async def test_a_rate_limit_is_waited_for(llmock: LLMock, make: Make) -> None:
    """The clock is hurried tenfold, so what is asked for is a tenth of a second, and a second is the least wait."""
    llmock.rate_limit(times=2, retry_after=0.1).reply("whole", times=None)
    assert (await complete(llmock, make)).text == "whole"
    assert len(llmock.requests) == 3
    llmock.assert_resilient()


@pytest.mark.parametrize(("status", "kind"), [(400, "Other"), (401, "Authentication"), (404, "Other")])
async def test_a_permanent_error_is_not_tried_again(llmock: LLMock, make: Make, status: int, kind: str) -> None:
    llmock.fail(status, times=None)
    error = await failure_of(llmock, make)
    assert (error.name, error.provider_kind) == (ErrorName.PROVIDER, ProviderErrorKind(kind))
    assert len(llmock.requests) == 1
    llmock.assert_resilient(strict=True)


async def test_an_outage_ends_after_four_requests(llmock: LLMock, make: Make) -> None:
    llmock.outage(status=529)
    error = await failure_of(llmock, make)
    assert (error.provider_kind, error.retryable) == (ProviderErrorKind.UNAVAILABLE, True)
    assert len(llmock.requests) == 4


async def test_broken_arguments_are_malformed(llmock: LLMock, make: Make) -> None:
    async def never(context: ToolContext) -> str:
        raise AssertionError("a malformed call was executed")

    llmock.break_tool_call("malformed_arguments").call_tool("t", {"a": 1}).reply("whole", times=None)
    assert (await complete(llmock, make, Does("t", never))).text == "whole"
    assert len(llmock.requests) == 2
