"""The lifecycles as `transitions` machines: what they accept is asked of these, and so are the diagrams."""

from __future__ import annotations

from dataclasses import dataclass

from transitions import Machine
from transitions.extensions import GraphMachine

from rho_spec.lifecycles import Lifecycle, Move


@dataclass(frozen=True, slots=True)
class Edge:
    """One transition of a machine."""

    source: str
    dest: str
    move: Move


def machine(lifecycle: Lifecycle) -> Machine:
    """The machine of a lifecycle; its model is itself. Only declared triggers exist."""
    return Machine(
        states=list(lifecycle.states),
        transitions=_rows(lifecycle),
        initial=lifecycle.initial,
        auto_transitions=False,
        send_event=True,
    )


def _rows(lifecycle: Lifecycle) -> list[dict[str, str | list[str]]]:
    return [{"trigger": move.trigger, "source": list(move.source), "dest": move.dest} for move in lifecycle.moves]


def edges(lifecycle: Lifecycle) -> tuple[Edge, ...]:
    """Every transition of the machine that `transitions` built, with the row it comes from."""
    rows = {(move.trigger, source): move for move in lifecycle.moves for source in move.source}
    built = machine(lifecycle)
    found: list[Edge] = []
    for trigger, event in built.events.items():
        for source, transitions in event.transitions.items():
            for transition in transitions:
                found.append(Edge(source, transition.dest or source, rows[trigger, source]))
    return tuple(found)


def mermaid(lifecycle: Lifecycle) -> str:
    """A Mermaid state diagram, drawn by `transitions`, with what shows each move as its label."""
    rows = [{**row, "label": move.label} for row, move in zip(_rows(lifecycle), lifecycle.moves, strict=True)]
    drawn = GraphMachine(
        states=list(lifecycle.states),
        transitions=rows,
        initial=lifecycle.initial,
        auto_transitions=False,
        graph_engine="mermaid",
        title=lifecycle.title,
    )
    text = drawn.get_graph().draw(None)
    return text if text.endswith("\n") else f"{text}\n"
