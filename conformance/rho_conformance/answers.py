"""Check what a driver answers against `spec/protocol.md`; a fault raises `DriverError` with the place.

Where the protocol leaves a driver the choice of a spelling, the answer comes back in the normal form.
"""

from __future__ import annotations

from typing import Any

from rho_conformance.errors import DriverError
from rho_conformance.replies import normal_reply
from rho_conformance.vocabulary import COUNTERS, MESSAGE_KINDS

PROTOCOL = 1
PROFILES = ("rho", "orca", "common")
TIMES = ("virtual", "auto", "real")
PLAIN_WAITS = frozenset({"model", "timer", "compactor", "collector", "reader", "recorder"})
NAMED_WAITS = ("tool:", "host:")

_FACT_TYPES: dict[str, type] = {
    "state": str,
    "busy": bool,
    "revision": int,
    "history": list,
    "tokens": dict,
    "saves": int,
}


_HELLO_KEYS = {
    "protocol": f"the number {PROTOCOL}",
    "name": "a text",
    "profiles": f"a list of {', '.join(PROFILES)}",
    "time": f"one of {', '.join(TIMES)}",
    "deterministic": "true or false",
}
"""The keys that `hello` cannot do without, and what each holds."""


def check_hello(raw: object) -> None:
    """`hello` must give protocol 1, a name, known profiles, a way of time and determinism; the version is optional."""
    hello = _map(raw, "hello")
    missing = [f"{key} ({kind})" for key, kind in _HELLO_KEYS.items() if key not in hello]
    if missing:
        raise DriverError(f"hello lacks {', '.join(missing)}; got {hello!r}")
    if hello["protocol"] != PROTOCOL or isinstance(hello["protocol"], bool):
        raise DriverError(f"hello.protocol is {hello['protocol']!r}; this suite speaks {PROTOCOL}")
    for key in ("name", "version"):
        if not isinstance(hello.get(key, ""), str):
            raise DriverError(f"hello.{key} must be a text, got {hello[key]!r}")
    profiles = _texts(hello["profiles"], "hello.profiles")
    if not profiles or not set(profiles) <= set(PROFILES):
        raise DriverError(f"hello.profiles must name some of {', '.join(PROFILES)}, got {profiles!r}")
    for key in ("capabilities", "extensions"):
        if key in hello:
            _texts(hello[key], f"hello.{key}")
    if hello["time"] not in TIMES:
        raise DriverError(f"hello.time must be one of {', '.join(TIMES)}, got {hello['time']!r}")
    if not isinstance(hello["deterministic"], bool):
        raise DriverError(f"hello.deterministic must be true or false, got {hello['deterministic']!r}")


def check_opened(raw: object) -> str | None:
    """`open` gives `{}` or `{error: NAME}`; the name, or None."""
    answer = _map(raw, "open")
    if not answer:
        return None
    error = answer.get("error")
    if not isinstance(error, str):
        raise DriverError(f"open must answer {{}} or {{error: NAME}}, got {raw!r}")
    return error


def check_answer(raw: object, step: int, last_seq: int | None) -> tuple[dict[str, Any], int | None]:
    """`perform` gives observations, waiting_on and facts.

    Returns:
        The answer in the normal form (the very same map where nothing had to change), and the last `seq` seen,
        which is to be passed in again.
    """
    answer = _map(raw, "perform")
    for key in ("observations", "waiting_on", "facts"):
        if key not in answer:
            raise DriverError(f"perform answered without {key!r}")
    given = _list(answer["observations"], "observations")
    for number, observation in enumerate(given):
        last_seq = _check_observation(observation, f"observations[{number}]", step, last_seq)
    for wait in _texts(answer["waiting_on"], "waiting_on"):
        if wait not in PLAIN_WAITS and not any(wait.startswith(p) and wait != p for p in NAMED_WAITS):
            raise DriverError(f"waiting_on holds {wait!r}, which is no wait that the protocol knows")
    return normal_answer(answer), last_seq


def normal_answer(answer: dict[str, Any]) -> dict[str, Any]:
    """The answer with replies and facts in the one form that is judged; raises `DriverError`."""
    facts = _normal_facts(_map(answer["facts"], "facts"))
    seen = [_normal_observation(one, f"observations[{k}]") for k, one in enumerate(answer["observations"])]
    if facts is answer["facts"] and all(a is b for a, b in zip(seen, answer["observations"], strict=True)):
        return answer
    return {**answer, "observations": seen, "facts": facts}


def _normal_observation(observation: dict[str, Any], where: str) -> dict[str, Any]:
    fields = observation.get("Reply")
    if fields is None:
        return observation
    normal = normal_reply(fields, f"{where}.Reply")
    return observation if normal is fields else {**observation, "Reply": normal}


def _check_observation(raw: object, where: str, step: int, last_seq: int | None) -> int:
    observation = _map(raw, where)
    for key in ("seq", "step", "at_ms"):
        if type(observation.get(key)) is not int:
            raise DriverError(f"{where}.{key} must be an integer, got {observation.get(key)!r}")
    names = [key for key in observation if key not in COUNTERS]
    if len(names) != 1:
        raise DriverError(f"{where} must hold one name beside seq, step and at_ms, got {names!r}")
    _check_json(_map(observation[names[0]], f"{where}.{names[0]}"), f"{where}.{names[0]}")
    if observation["step"] != step:
        raise DriverError(f"{where}.step is {observation['step']}, but this is perform number {step}")
    seq: int = observation["seq"]
    if last_seq is not None and seq <= last_seq:
        raise DriverError(f"{where}.seq is {seq} after {last_seq}: it must count up over the whole world")
    return seq


def _normal_facts(facts: dict[str, Any]) -> dict[str, Any]:
    """Facts may be flat, under `sessions`, or one map for each session; what is no fact is left alone.

    A map under a name that is neither a fact nor a session would be overlooked in silence: that is refused.
    """
    _check_session_facts(facts, "facts")
    for name, session in _map(facts.get("sessions", {}), "facts.sessions").items():
        _check_session_facts(_map(session, f"facts.sessions.{name}"), f"facts.sessions.{name}")
    loose = {name: value for name, value in facts.items() if name not in _FACT_TYPES and isinstance(value, dict)}
    loose.pop("sessions", None)
    for name, session in loose.items():
        if not set(session) & set(_FACT_TYPES) and session:
            raise DriverError(
                f"facts.{name} is neither a fact nor the facts of a session: facts are {{{', '.join(_FACT_TYPES)}}}, "
                f"or such a map for each session, got {session!r}"
            )
        _check_session_facts(session, f"facts.{name}")
    if not loose:
        return facts
    kept = {name: value for name, value in facts.items() if name not in loose}
    return {**kept, "sessions": {**loose, **facts.get("sessions", {})}}


def _check_session_facts(facts: dict[str, Any], where: str) -> None:
    for key, kind in _FACT_TYPES.items():
        if key in facts and type(facts[key]) is not kind:
            raise DriverError(f"{where}.{key} must be a {kind.__name__}, got {facts[key]!r}")
    for number, message in enumerate(facts.get("history", ())):
        place = f"{where}.history[{number}]"
        if not isinstance(message, dict) or len(message) != 1 or not set(message) <= MESSAGE_KINDS:
            raise DriverError(f"{place} must be a map with one of {', '.join(sorted(MESSAGE_KINDS))}, got {message!r}")
        _check_json(message, place)


def _check_json(value: object, where: str) -> None:
    if value is None or isinstance(value, str | int | float):
        return
    if isinstance(value, list):
        for number, item in enumerate(value):
            _check_json(item, f"{where}[{number}]")
    elif isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise DriverError(f"{where} has the key {key!r}, which is not a text")
            _check_json(item, f"{where}.{key}")
    else:
        raise DriverError(f"{where} is a {type(value).__name__}, not plain JSON")


def _map(value: object, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise DriverError(f"{where} must be a map, got {value!r}")
    return value


def _list(value: object, where: str) -> list[Any]:
    if not isinstance(value, list):
        raise DriverError(f"{where} must be a list, got {value!r}")
    return value


def _texts(value: object, where: str) -> list[str]:
    texts = _list(value, where)
    if not all(isinstance(text, str) for text in texts):
        raise DriverError(f"{where} must hold texts only, got {texts!r}")
    return texts
