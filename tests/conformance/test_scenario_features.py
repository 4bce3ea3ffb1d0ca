"""What a scenario asks of a driver, feature by feature."""

from __future__ import annotations

import pytest

from rho_conformance.scenario import Scenario, parse_text
from rho_conformance.scenario.features import features, not_yet

HEAD = "id: T/x\nrules: []\nprofile: rho\n"


def parsed(text: str) -> Scenario:
    return parse_text(HEAD + text + ("" if "expect:" in text else "\nexpect: {}"))[0]


def asked(text: str) -> set[str]:
    return set(features(parsed(text)))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("steps: [start: hi, cancel: {}, read: 1]", {"start", "cancel", "read"}),
        ("steps: [provider: [{delta: a}, {fail: {kind: Other}}]]", {"provider.delta", "provider.fail"}),
        ("steps: [provider: {text: a, usage: {}}]", {"provider.delta", "provider.usage", "provider.return"}),
        (
            "steps: [provider: {calls: [{id: A, tool: t, async: true}]}]",
            {"provider.call_delta", "provider.return", "call.async"},
        ),
        ("steps: [start_tool: {call: {id: A, tool: t, async: true}}]", {"start_tool", "call.async"}),
        ("steps: [together: [{maybe: {tool: {id: A, ask: q}}}, {steer: {text: x}}]]", {"tool.ask", "steer"}),
        ("steps: [maybe: {compactor: {panic: true}}]", {"compactor.panic"}),
        ("steps: [boundary: none, recorder: ok]", {"boundary", "recorder"}),
        ("config: {reader: held, system: x}\nsteps: []", {"config.system"}),
        (
            "config: {tools: {t: {mode: async, access: {write: [f]}, on_cancel: {complete: 1s}}}}\nsteps: []",
            {
                "config.tools",
                "config.tools.mode=async",
                "config.tools.access=write",
                "config.tools.on_cancel=complete",
            },
        ),
        (
            "config: {provider: {steerable: true, mode: cooperative}}\nsteps: []",
            {"config.provider", "config.provider.steerable", "config.provider.mode=cooperative"},
        ),
        ("config: {provider: {steerable: false}}\nsteps: []", {"config.provider"}),
        (
            "config: {boundary: gated, recorder: auto, compaction: {tokens: 1}, compactor: external}\nsteps: []",
            {
                "config.boundary",
                "config.boundary=gated",
                "config.recorder",
                "config.recorder=auto",
                "config.compaction",
                "config.compactor",
                "config.compactor=external",
            },
        ),
        (
            "steps: []\nexpect: {state: Idle, busy: false, replies: {}, sessions: {s2: {history: []}}}",
            {"observe.state", "observe.busy", "observe.replies", "observe.history"},
        ),
        (
            "steps: []\nexpect: {any_of: [{snapshot: {$any: true}}, {waiting_on: []}]}",
            {"observe.snapshot", "observe.waiting_on"},
        ),
        (
            "steps: []\nexpect: {absent: [ToolStarted, {ToolExecute: {}}]}",
            {"observe.events", "observe.executions"},
        ),
        ("steps: [until: {event: ModelCall, n: 2}]", {"observe.requests"}),
        ("steps: [check: {outcomes: {r1: pending}}]", {"observe.outcome"}),
    ],
)
def test_features(text: str, wanted: set[str]) -> None:
    assert asked(text) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("steps: [start: hi]", []),
        ("steps: [worker: {spawn: w}, continue: {}]", ["continue", "worker"]),
        ("steps: [start: {text: hi, token: t}, cancel: {token: t}]", ["cancel.token", "start.token"]),
        ("steps: [shutdown: {grace: 1s}]", ["shutdown.grace"]),
        ("steps: [query: processes, query: state]", ["query processes"]),
        ("config: {background_limit: 1}\nsteps: []", ["config.background_limit"]),
        ("steps: []\nexpect: {pending: 1}", ["expect.pending"]),
        ("steps: [until: SubagentFinished]", ["SubagentFinished"]),
        ("steps: [together: [{workers: cancel_all}]]", ["workers"]),
    ],
)
def test_what_belongs_to_orca_is_not_built_yet(text: str, wanted: list[str]) -> None:
    assert not_yet(parsed(text)) == wanted
