"""Protocol JSON -> values of the core: durations, messages, calls, usage, answers. Raises `DriverError`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from rho_conformance.errors import DriverError
from rho_core import messages as m
from rho_core.asks import Answers, Choice, HostInputRequest, Question
from rho_core.errors import Error as CoreError
from rho_core.errors import ErrorName, ProviderError, ProviderErrorKind, from_provider
from rho_core.normal.encode import USAGE_FIELDS

_UNITS = {"ms": 1, "s": 1_000, "m": 60_000}
_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m)")
RESTORED_TOOL = "tool"
"""Name of a call that a message gives by its id alone."""


def fields(value: Any, where: str) -> dict[str, Any]:
    """A map without the keys whose value is null: those count as absent (scenario format §1)."""
    if not isinstance(value, Mapping):
        raise DriverError(f"{where}: expected a map, got {value!r}")
    return {key: item for key, item in value.items() if item is not None}


def text(value: Any, where: str) -> str:
    """A text, as it is."""
    if not isinstance(value, str):
        raise DriverError(f"{where}: expected a text, got {value!r}")
    return value


def need(args: Mapping[str, Any], key: str, where: str) -> Any:
    """A key that must be there."""
    if key not in args:
        raise DriverError(f"{where}: the key {key!r} is missing")
    return args[key]


def duration_ms(value: Any, where: str) -> int:
    """`500ms`, `1.5s` or `2m` as whole milliseconds."""
    match = _DURATION.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise DriverError(f"{where}: expected a duration such as 500ms, 1.5s or 2m, got {value!r}")
    exact = Decimal(match[1]) * _UNITS[match[2]]
    return int(exact.quantize(Decimal(1), ROUND_HALF_UP))


def joined(value: Any, where: str) -> str:
    """A text, or a list of texts that a provider sends as one delta each."""
    return "".join(texts(value, where))


def texts(value: Any, where: str) -> list[str]:
    """A text or a list of texts, as a list."""
    return [text(v, where) for v in (value if isinstance(value, list) else [value])]


def call(value: Any, where: str) -> m.ToolCall:
    """CALL `{id, tool, args?}`; `args` is a map, or raw JSON text that may be no JSON at all."""
    args = fields(value, where)
    given = args.get("args", {})
    raw = given if isinstance(given, str) else m.freeze_json(given)
    return m.ToolCall(text(need(args, "id", where), where), text(need(args, "tool", where), where), raw)


def blocks(value: Any, where: str) -> tuple[m.Block, ...]:
    """`{text?, calls?}` as content: the text first, then the calls; neither gives zero blocks."""
    body = fields(value, where)
    prose: tuple[m.Block, ...] = (m.Text(joined(body["text"], where)),) if "text" in body else ()
    return prose + tuple(_call_block(c, where) for c in body.get("calls", ()))


def _call_block(value: Any, where: str) -> m.ToolCall:
    return m.ToolCall(value, RESTORED_TOOL, "{}") if isinstance(value, str) else call(value, where)


def usage(value: Any, where: str) -> m.Usage:
    """`{input_tokens?, …}`; other keys are a fault of the file."""
    given = fields(value, where)
    unknown = sorted(set(given) - set(USAGE_FIELDS))
    if unknown:
        raise DriverError(f"{where}: usage has no field {unknown[0]!r}")
    return m.Usage(**given)


def message(value: Any, where: str) -> m.Message:
    """One message of the normal form (`spec/protocol.md`, "Messages")."""
    given = fields(value, where)
    if len(given) != 1:
        raise DriverError(f"{where}: a message is a map with one key, got {value!r}")
    ((kind, body),) = given.items()
    match kind:
        case "system":
            return m.System(text(body, where))
        case "user":
            return m.user(text(body, where))
        case "assistant":
            return m.Assistant(blocks(body, where), reasoning_summary=fields(body, where).get("summary"))
        case "aborted":
            return _aborted(fields(body, where), where)
        case "result":
            return _result(fields(body, where), where)
    raise DriverError(f"{where}: the core has no message {kind!r}")


def _aborted(body: dict[str, Any], where: str) -> m.AbortedAssistant:
    partial = tuple(
        m.PartialCall(p.get("id"), p.get("name"), p.get("arguments", ""))
        for p in (fields(raw, where) for raw in body.get("tool_calls", ()))
    )
    return m.AbortedAssistant(
        blocks(body, where), body.get("summary"), (), partial, usage(body.get("usage", {}), where)
    )


def _result(body: dict[str, Any], where: str) -> m.ToolResult:
    ok = need(body, "ok", where)
    if not isinstance(ok, bool):
        raise DriverError(f"{where}: 'ok' must be true or false, got {ok!r}")
    return m.ToolResult(text(need(body, "id", where), where), ok, body.get("text", ""))


def messages(value: Any, where: str) -> m.History:
    """A list of messages; a bare text is a user message."""
    if not isinstance(value, list):
        raise DriverError(f"{where}: expected a list of messages, got {value!r}")
    return tuple(m.user(v) if isinstance(v, str) else message(v, where) for v in value)


def answers(value: Any, where: str) -> Answers:
    """`{question: [answer…]}`; a bare answer stands for a list of one."""
    return tuple((key, tuple(texts(given, where))) for key, given in fields(value, where).items())


DEFAULT_ANSWERS: Answers = (("q", ("yes",)),)


def request(request_id: str, name: str) -> HostInputRequest:
    """The fixed question of `ask: NAME`: `q`, with the choices yes and no."""
    question = Question("q", "Go on?", (Choice("yes", "Yes"), Choice("no", "No")))
    return HostInputRequest(request_id, name, (question,))


def core_error(value: Any, where: str) -> CoreError:
    """`{kind, message?, retryable?}` of a failing compactor: an error's own name, or a provider kind."""
    given = fields(value, where)
    kind = text(need(given, "kind", where), where)
    said = given.get("message", f"the compactor failed: {kind}")
    if kind in {str(k) for k in ProviderErrorKind} - {"Authentication", "Interrupted"}:
        return from_provider(ProviderError(kind, said, bool(given.get("retryable", False))))
    try:
        return CoreError(ErrorName(kind), said, bool(given.get("retryable", False)))
    except ValueError:
        raise DriverError(f"{where}: there is no error kind {kind!r}") from None
