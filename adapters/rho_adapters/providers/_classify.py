"""What the official clients raise, as provider errors: of which kind, and whether another attempt may help.

Two ways to go wrong are kept apart (design §8). The server refused, or the connection failed: a failure, here.
The exchange went well, but what came is not a whole response (no terminal marker, no JSON, another shape):
that response is malformed (RHO-RET-1), and `Sdk.classify` gives None for it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import httpx2

from rho_core import retry_after
from rho_core.errors import ProviderError, ProviderErrorKind

from ..runtime.text import clean

Kind = ProviderErrorKind
Judgement = tuple[ProviderErrorKind, bool]

_UNREADABLE = (ValueError, RecursionError)
"""No JSON, JSON that is too deep, no UTF-8; or, before anything was sent, a request that cannot be written."""

DIAGNOSTIC_CHARS = 2_000
"""How much of a server's own words is kept. Longer bodies are pages of proxies."""

_STATUS: dict[int, Judgement] = {
    401: (Kind.AUTHENTICATION, False),
    403: (Kind.AUTHENTICATION, False),
    408: (Kind.TIMEOUT, True),
    409: (Kind.UNAVAILABLE, True),
    425: (Kind.UNAVAILABLE, True),
    429: (Kind.RATE_LIMIT, True),
    504: (Kind.TIMEOUT, True),
}

_NAMED: dict[str, Judgement] = {
    "authentication_error": (Kind.AUTHENTICATION, False),
    "invalid_api_key": (Kind.AUTHENTICATION, False),
    "permission_error": (Kind.AUTHENTICATION, False),
    "rate_limit_error": (Kind.RATE_LIMIT, True),
    "rate_limit_exceeded": (Kind.RATE_LIMIT, True),
    "timeout_error": (Kind.TIMEOUT, True),
    "vector_store_timeout": (Kind.TIMEOUT, True),
    "api_error": (Kind.UNAVAILABLE, True),
    "overloaded": (Kind.UNAVAILABLE, True),
    "overloaded_error": (Kind.UNAVAILABLE, True),
    "server_error": (Kind.UNAVAILABLE, True),
    "unavailable_error": (Kind.UNAVAILABLE, True),
}
_HOPELESS = re.compile(
    r"invalid|not_found|too_(large|long|small)|billing|quota|policy|unsupported|context_length|exceed_context"
    r"|image|data_residency|content_filter|not_supported|permission"
)
_SPENT = frozenset({"insufficient_quota", "billing_hard_limit_reached"})
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_TOKENS = re.compile(r"(?i)\b(?:sk|pk|rk|key|xox[a-z])-[A-Za-z0-9_\-*.]{6,}|\bBearer\s+[^\s\"',;]+")


def by_status(status: int) -> Judgement:
    """Of an HTTP status of 400 and up: kind, retryable."""
    known = _STATUS.get(status)
    if known is not None:
        return known
    return (Kind.UNAVAILABLE, True) if status >= 500 else (Kind.OTHER, False)


def by_name(*names: Any) -> Judgement:
    """Of an error event inside a stream, by its code or type; the first known name decides.

    Some servers put an HTTP status there. An unknown name may be tried again: the attempts are bounded.
    """
    for name in names:
        if isinstance(name, int) or (isinstance(name, str) and name.isascii() and name.isdecimal() and len(name) == 3):
            return by_status(int(name)) if int(name) >= 400 else (Kind.OTHER, True)
        if not isinstance(name, str):
            continue
        if name in _NAMED:
            return _NAMED[name]
        if _HOPELESS.search(name):
            return Kind.OTHER, False
    return Kind.OTHER, True


def wait_of(headers: Mapping[str, str], now_unix_ms: int) -> int | None:
    """The wait that a response asks for, in milliseconds, rounded up: `retry-after-ms` first, then `retry-after`."""
    exact = headers.get("retry-after-ms", "")
    if re.fullmatch(r"\s*[0-9]+(\.[0-9]*)?\s*", exact, re.ASCII):
        thousandfold = retry_after.parse(exact, now_unix_ms)  # read as seconds: a thousand times too long
        if thousandfold is not None:
            return -(-thousandfold // 1_000)
    return retry_after.parse(headers.get("retry-after", ""), now_unix_ms)


_SECRET_HEADER = re.compile(r"(?i)auth|key|token|secret|cookie")


def secrets_of(client: Any) -> list[str]:
    """What an official client knows and must not be seen: credentials, secret headers, secrets in its URL."""
    found = [getattr(client, name, None) for name in ("api_key", "auth_token", "admin_api_key")]
    headers = getattr(client, "default_headers", None)
    if isinstance(headers, Mapping):
        values = [v for k, v in headers.items() if _SECRET_HEADER.search(str(k)) and isinstance(v, str)]
        found += [part for value in values for part in (value, value.rpartition(" ")[2])]
    url = urlsplit(str(getattr(client, "base_url", "")))
    found += [url.password, unquote(url.password or ""), *(value for _, value in parse_qsl(url.query))]
    return [s for s in found if isinstance(s, str)]


class Redactor:
    """Takes secrets out of text: the ones it was told, and whatever looks like an API key."""

    __slots__ = ("_secrets",)

    def __init__(self, secrets: Iterable[Any]) -> None:
        found = {s for s in secrets if isinstance(s, str) and len(s) >= 6}
        self._secrets = sorted(found, key=len, reverse=True)

    def __call__(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "[redacted]")
        return _TOKENS.sub("[redacted]", text)

    def __repr__(self) -> str:
        return "Redactor()"


@dataclass(frozen=True, slots=True)
class Sdk:
    """The exceptions of one official client. They share names, not classes."""

    base: type[Exception]
    connection: type[Exception]
    timeout: type[Exception]

    @property
    def raised(self) -> tuple[type[Exception], ...]:
        """Everything that a request may raise. Others are faults of the program."""
        return (self.base, httpx2.HTTPError, httpx2.StreamError, httpx2.InvalidURL, *_UNREADABLE)

    def told(self, error: Exception) -> bool:
        """Did the server say so itself? Else the connection broke, or what came cannot be read."""
        return isinstance(error, self.base) and not isinstance(error, self.connection)

    def classify(self, error: Exception, redact: Redactor, *, opened: bool) -> ProviderError | None:
        """The provider error, or None for a response that is malformed. `opened`: its headers had come."""
        cause = error.__cause__ if isinstance(error, self.connection) else error
        if isinstance(error, self.timeout) or isinstance(cause, httpx2.TimeoutException):
            return ProviderError(Kind.TIMEOUT, _when("the provider did not answer in time", opened), True)
        if opened and isinstance(cause, (httpx2.DecodingError, *_UNREADABLE)):
            return None
        if isinstance(cause, (httpx2.UnsupportedProtocol, httpx2.LocalProtocolError, httpx2.InvalidURL, *_UNREADABLE)):
            # Their texts quote the request: a header, a URL.
            return ProviderError(Kind.OTHER, f"the request could not be sent ({type(cause).__name__})", False)
        if isinstance(error, self.connection | httpx2.HTTPError | httpx2.StreamError):
            return _broken(cause, opened)
        status = getattr(error, "status_code", None)
        if isinstance(status, int) and status >= 400:
            return _answered(error, status, redact)
        return said(getattr(error, "body", None) or str(error), redact)


def _when(text: str, opened: bool) -> str:
    return f"{text} (after its response began)" if opened else text


def _broken(cause: BaseException | None, opened: bool) -> ProviderError:
    name = type(cause).__name__ if cause is not None else "unknown"
    if opened:
        return ProviderError(Kind.INTERRUPTED, "the connection broke in the middle of the response", True, None, name)
    return ProviderError(Kind.UNAVAILABLE, "the provider could not be reached", True, None, name)


def _answered(error: Exception, status: int, redact: Redactor) -> ProviderError:
    kind, retryable = by_status(status)
    names = _names(getattr(error, "body", None))
    if status == 429 and not _SPENT.isdisjoint(names):
        retryable = False  # the account is spent: no wait helps
    headers = getattr(getattr(error, "response", None), "headers", {})
    wait = wait_of(headers, time.time_ns() // 1_000_000) if retryable else None
    label = _label(names, redact)
    message = f"the provider answered {status}" + (f" ({label})" if label else "")
    return ProviderError(kind, message, retryable, wait, _diagnostic(error, redact))


def said(body: Any, redact: Redactor) -> ProviderError:
    """Of an error that the server reported inside a response of status 200; `body`: its error object, or text."""
    names = _names(body)
    kind, retryable = by_name(*names)
    if not _SPENT.isdisjoint(names):
        kind, retryable = Kind.RATE_LIMIT, False
    label = _label(names, redact)
    message = "the provider reported an error in its stream" + (f" ({label})" if label else "")
    return ProviderError(kind, message, retryable, None, bounded(_words(body), redact))


def _names(body: Any) -> tuple[Any, ...]:
    """Code, then type, of an error object, whether bare or inside `error`."""
    if isinstance(body, Mapping) and isinstance(body.get("error"), Mapping):
        body = body["error"]
    if not isinstance(body, Mapping):
        return ()
    return tuple(n for n in (body.get("code"), body.get("type")) if isinstance(n, str | int))


def _label(names: tuple[Any, ...], redact: Redactor) -> str | None:
    name = next((n for n in names if isinstance(n, str) and _NAME.fullmatch(n)), None)
    return None if name is None or redact(name) != name else name


def _words(body: Any) -> str:
    if isinstance(body, Mapping):
        inner = body.get("error")
        message = (inner if isinstance(inner, Mapping) else body).get("message")
        return message if isinstance(message, str) else str(dict(body))
    return "" if body is None else str(body)


def _diagnostic(error: Exception, redact: Redactor) -> str | None:
    request = getattr(error, "request_id", None)
    words = _words(getattr(error, "body", None))
    return bounded(f"[request {request}] {words}" if isinstance(request, str) and request else words, redact)


def bounded(text: str, redact: Redactor) -> str | None:
    """Diagnostic text: no secrets, no lone surrogates, not long. Redacted first: a cut must not hide half a key."""
    text = clean(redact(text[: 16 * DIAGNOSTIC_CHARS]))[:DIAGNOSTIC_CHARS]
    return text or None
