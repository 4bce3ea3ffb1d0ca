"""Reach an implementation in process: the `Driver` protocol, its loader, and the checked form of one.

`spec/protocol.md` fixes the four methods and what goes through them. A driver may be sync or async;
`connect` gives both the same sync face, and turns every exception and malformed answer into `DriverError`.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from importlib import import_module
from typing import Any, Protocol, TypeAlias, TypeVar, cast

from rho_conformance.answers import check_answer, check_hello, check_opened
from rho_conformance.defaults import Defaults
from rho_conformance.errors import DriverError, UsageError

__all__ = [
    "ConnectedDriver",
    "Driver",
    "DriverError",
    "DriverFactory",
    "Hello",
    "Json",
    "JsonMap",
    "UsageError",
    "connect",
    "declares",
    "load_driver",
]

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"
JsonMap: TypeAlias = dict[str, Any]
"""A JSON object; its values are `Json`, typed loosely because nearly every reader of one knows its shape."""

T = TypeVar("T")


class Driver(Protocol):
    """What `python:module:factory` must build. Methods may be plain or `async`; plain JSON in and out."""

    def hello(self) -> JsonMap | Awaitable[JsonMap]:
        """Say who answers and what it can do; callable before `open`."""

    def open(self, config: JsonMap) -> JsonMap | Awaitable[JsonMap]:
        """Begin a new world; `{}` or `{"error": NAME}`."""

    def perform(self, stimuli: list[JsonMap]) -> JsonMap | Awaitable[JsonMap]:
        """Deliver the stimuli in order without settling between them, then settle and report."""

    def close(self) -> Awaitable[None] | None:
        """Give back whatever the world holds."""


DriverFactory: TypeAlias = Callable[[], Driver]


@dataclass(frozen=True, slots=True)
class Hello:
    """The checked answer of `hello`; `raw` keeps fields that this version does not know."""

    name: str
    version: str
    profiles: tuple[str, ...]
    capabilities: tuple[str, ...]
    time: str
    deterministic: bool
    raw: JsonMap

    @classmethod
    def parse(cls, raw: JsonMap) -> Hello:
        """Check `raw` against `spec/protocol.md`; raises `DriverError`."""
        check_hello(raw)
        raw = {"version": "0", **raw}
        return cls(
            name=raw["name"],
            version=raw["version"],
            profiles=tuple(raw["profiles"]),
            capabilities=tuple(raw.get("capabilities", ("*",))),
            time=raw["time"],
            deterministic=raw["deterministic"],
            raw=raw,
        )

    def supports(self, feature: str) -> bool:
        """Whether a declared pattern covers the feature (protocol, "Capabilities")."""
        return declares(self.raw, feature)

    @property
    def exact(self) -> bool:
        """Whether one settle is proof: deterministic, and time moves only when it is told to."""
        return self.deterministic and self.time != "real"


def declares(hello: JsonMap, feature: str) -> bool:
    """Whether a `hello` declares a feature; without a list of capabilities it declares everything."""
    return any(fnmatchcase(feature, pattern) for pattern in hello.get("capabilities", ("*",)))


class ConnectedDriver:
    """The sync, checked face of one driver: answers come back in the normal form, or `DriverError` is raised.

    What the protocol lets a driver leave out is filled in (`defaults`).
    """

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._runner: asyncio.Runner | None = None
        self._performed = 0
        self._last_seq: int | None = None
        self._hello: Hello | None = None
        self._defaults: Defaults | None = None

    def hello(self) -> Hello:
        """The driver's `hello`, asked once and remembered."""
        if self._hello is None:
            self._hello = Hello.parse(self._call("hello", lambda: self._driver.hello()))
        return self._hello

    def open(self, config: JsonMap) -> str | None:
        """Begin a new world; the error's name when the configuration is refused, else None."""
        answer = self._call("open", lambda: self._driver.open(config))
        self._performed, self._last_seq = 0, None
        self._defaults = Defaults(config, exact=self._hello is None or self._hello.exact)
        return check_opened(answer)

    def perform(self, stimuli: list[JsonMap]) -> JsonMap:
        """Deliver stimuli and settle; the answer holds `observations`, `waiting_on` and `facts`."""
        answer = self._call("perform", lambda: self._driver.perform(stimuli))
        self._performed += 1
        checked, self._last_seq = check_answer(answer, self._performed, self._last_seq)
        return checked if self._defaults is None else self._defaults.fill(stimuli, checked)

    def close(self) -> None:
        """Close the driver and then its event loop, if it had one."""
        try:
            self._call("close", lambda: self._driver.close())
        finally:
            if self._runner is not None:
                self._runner.close()
                self._runner = None

    def _call(self, method: str, call: Callable[[], object]) -> Any:
        try:
            answer = call()
            return self._wait(answer) if inspect.isawaitable(answer) else answer
        except DriverError:
            raise
        except Exception as fault:
            raise DriverError(f"{method} raised {type(fault).__name__}: {fault}") from fault

    def _wait(self, answer: Awaitable[T]) -> T:
        # One loop for the driver's whole life: tasks, timers and locks belong to the loop they were made in.
        if self._runner is None:
            self._runner = asyncio.Runner()

        async def finish() -> T:
            return await answer

        return self._runner.run(finish())

    def __enter__(self) -> ConnectedDriver:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def connect(driver: Driver) -> ConnectedDriver:
    """The sync, checked form of a driver. The caller closes it."""
    return ConnectedDriver(driver)


def load_driver(spec: str) -> DriverFactory:
    """The factory that `python:module:factory` names; raises `UsageError` when there is none."""
    scheme, _, rest = spec.partition(":")
    module_name, _, attribute = rest.partition(":")
    if scheme != "python" or not module_name or not attribute:
        raise UsageError(f"target {spec!r}: expected python:MODULE:FACTORY")
    return import_factory(module_name, attribute, target=spec)


def import_factory(module_name: str, attribute: str, *, target: str) -> Callable[..., Any]:
    """Import `module_name` and take a dotted `attribute` of it; `target` is what the user asked for."""
    try:
        found: Any = import_module(module_name)
    except ModuleNotFoundError as missing:
        # Only a missing target is the user's mistake; a module that fails inside is shown as it is.
        if missing.name is None or not f"{module_name}.".startswith(f"{missing.name}."):
            raise UsageError(f"target {target!r}: {module_name} needs the package {missing.name!r}") from missing
        raise UsageError(f"target {target!r}: there is no module {missing.name!r}") from missing
    except (Exception, SystemExit) as fault:
        # A SyntaxError, a sys.exit at the top of the module, whatever: this target cannot be asked anything.
        cause = f"{type(fault).__name__}: {fault}"
        raise UsageError(f"target {target!r}: {module_name} cannot be imported: {cause}") from fault
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise UsageError(f"target {target!r}: module {module_name!r} has no {attribute!r}")
        found = getattr(found, part)
    if not callable(found):
        raise UsageError(f"target {target!r}: {module_name}:{attribute} is not callable")
    return cast(Callable[..., Any], found)
