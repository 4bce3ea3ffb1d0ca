"""A lifecycle as an SVG picture: states in layers, moves as curves, hidden moves dashed. Deterministic, without tools.

The states of the file are put in layers in their order: a move to the next layer goes down, a longer one down at the
left, one to an earlier state back at the right. A hidden move from many states is written beside where it leads to.
"""

from __future__ import annotations

from html import escape
from textwrap import wrap

from rho_spec.lifecycles import Lifecycle
from rho_spec.machines import edges

ROW, GAP, BOX, CHAR, MARGIN, LANE, MANY = 104, 104, 30, 7.2, 28, 34, 3
STYLE = (
    "text{font:12px sans-serif;fill:#222}text.l{font-size:10px;fill:#555;paint-order:stroke;stroke:#fff;"
    "stroke-width:4px;stroke-linejoin:round}rect{fill:#f6f8fb;stroke:#456;stroke-width:1.2}rect.f{stroke-width:2.6}"
    "text.n{font-size:10px;fill:#89a;font-style:italic;paint-order:stroke;stroke:#fff;stroke-width:3px}"
    "path{fill:none;stroke:#678;stroke-width:1.1}path.h{stroke-dasharray:4 3;stroke:#9ab}"
)
ARROW = (
    '<marker id="a" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    '<path d="M0 0L8 4L0 8z" style="fill:#678;stroke:none"/></marker>'
)

Pair = tuple[str, str]


class Drawing:
    """Positions first, then lines. Units are pixels."""

    def __init__(self, lifecycle: Lifecycle) -> None:
        self.m = lifecycle
        self.order = {state: number for number, state in enumerate(lifecycle.states)}
        self.moves: dict[tuple[str, str, bool], list[str]] = {}
        self.notes: dict[str, list[str]] = {}
        many = {move.trigger for move in lifecycle.moves if move.hidden and len(move.source) >= MANY}
        for edge in edges(lifecycle):
            if edge.move.trigger not in many:
                self.moves.setdefault((edge.source, edge.dest, bool(edge.move.hidden)), []).append(edge.move.trigger)
        for move in lifecycle.moves:
            if move.trigger in many:
                self.notes.setdefault(move.dest, []).extend(_wrapped(f"{move.trigger} from {', '.join(move.source)}"))
        self.width_of = {state: max(64, CHAR * len(state) + 22) for state in lifecycle.states}
        self.layer = self._depths()
        self.long = sum(self._span(key) > 1 for key in self.moves)
        self.at: dict[str, tuple[float, float]] = {}
        self._place()
        self.right = max(x + self.width_of[state] / 2 for state, (x, _) in self.at.items())
        self.left = min(x - self.width_of[state] / 2 for state, (x, _) in self.at.items())
        self.lanes = {"left": 0, "right": 0}

    def _span(self, key: tuple[str, str, bool]) -> int:
        """Layers that a move goes down."""
        return self.layer[key[1]] - self.layer[key[0]]

    def _depths(self) -> dict[str, int]:
        """The longest way down to each state decides its layer; one that no line leads to is below its sources."""
        depth: dict[str, int] = {}
        for state in self.m.states:
            above = [a for a, b, _ in self.moves if b == state and a in depth]
            if not above and state in self.notes:
                above = [a for move in self.m.moves if move.dest == state for a in move.source if a in depth]
            depth[state] = max((depth[a] + 1 for a in above), default=0)
        return depth

    def _place(self) -> None:
        layers = [[s for s in self.m.states if self.layer[s] == n] for n in range(max(self.layer.values()) + 1)]
        widest = max(sum(self.width_of[s] + GAP for s in layer) for layer in layers)
        margin = MARGIN + max(30 + LANE * self.long, 190 if self.notes else 0)
        for level, layer in enumerate(layers):
            layer.sort(key=lambda s: (self._pull(s), self.order[s]))
            x = margin + (widest - sum(self.width_of[s] + GAP for s in layer)) / 2 + GAP / 2
            for state in layer:
                self.at[state] = (x + self.width_of[state] / 2, 64 + level * ROW)
                x += self.width_of[state] + GAP

    def _pull(self, state: str) -> float:
        above = [self.at[source][0] for source, dest, _ in self.moves if dest == state and source in self.at]
        return sum(above) / len(above) if above else 0.0

    def svg(self) -> str:
        """The whole picture."""
        lines, labels = [], []
        for number, ((source, dest, hidden), triggers) in enumerate(self.moves.items()):
            path, x, y, anchor = self._curve(source, dest, number)
            lines.append(f'<path class="{"h" if hidden else "s"}" d="{path}" marker-end="url(#a)"/>')
            labels.append(
                f'<text class="l" x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}">{escape(", ".join(triggers))}</text>'
            )
        boxes = [self._box(state) for state in self.m.states]
        beside = [len(", ".join(t)) for (a, b, _), t in self.moves.items() if self.layer[b] <= self.layer[a]]
        width = round(self.right + max(30 + 6 * max(beside, default=0), LANE * self.lanes["right"]) + MARGIN)
        height = round(max(y for _, y in self.at.values()) + BOX + MARGIN)
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">'
        )
        title = f"<title>{escape(self.m.title)}</title><style>{STYLE}</style><defs>{ARROW}</defs>"
        name = f'<text x="{MARGIN}" y="24" style="font-size:14px;font-weight:bold">{escape(self.m.title)}</text>'
        return "\n".join([head, title, f'<rect width="{width}" height="{height}" style="fill:#fff;stroke:none"/>', name,
                          *lines, *boxes, *labels, "</svg>", ""])  # fmt: skip

    def _box(self, state: str) -> str:
        x, y = self.at[state]
        w = self.width_of[state]
        final = ' class="f"' if state in self.m.final else ""
        start = f'<circle cx="{x - w / 2 - 14:.0f}" cy="{y:.0f}" r="5"/>' if state == self.m.initial else ""
        rect = f'<rect{final} x="{x - w / 2:.0f}" y="{y - BOX / 2:.0f}" width="{w:.0f}" height="{BOX}" rx="8"/>'
        told = f"<title>{escape(self.m.states[state])}</title>"
        name = f'<text x="{x:.0f}" y="{y + 4:.0f}" text-anchor="middle">{escape(state)}</text>'
        beside = f'<text class="n" x="{x - w / 2 - 8:.0f}" text-anchor="end"'
        notes = "".join(
            f'{beside} y="{y - 6 + 12 * number:.0f}">{escape(note)}</text>'
            for number, note in enumerate(self.notes.get(state, ()))
        )
        return f"<g>{told}{rect}{start}{name}{notes}</g>"

    def _curve(self, source: str, dest: str, number: int) -> tuple[str, float, float, str]:
        """The path of a move, and where its label begins."""
        (x1, y1), (x2, y2) = self.at[source], self.at[dest]
        if source == dest:
            edge = x1 + self.width_of[source] / 2
            return f"M{edge:.0f} {y1 - 8:.0f}c26 -8 26 24 0 16", edge + 23, y1 + 4, "start"
        down = self.layer[dest] - self.layer[source]
        if down == 1:
            x1, x2 = x1 + (number % 3 - 1) * 9, x2 + (number % 3 - 1) * 9
            y1, y2 = y1 + BOX / 2, y2 - BOX / 2 - 1
            middle, t = (y1 + y2) / 2, 0.4 + 0.1 * (number % 3)
            path = f"M{x1:.0f} {y1:.0f}C{x1:.0f} {middle:.0f} {x2:.0f} {middle:.0f} {x2:.0f} {y2:.0f}"
            return path, x1 + (x2 - x1) * (3 * t * t - 2 * t**3), y1 + (y2 - y1) * t + 4, "middle"
        side = -1 if down > 1 else 1
        self.lanes["left" if down > 1 else "right"] += 1
        lane = self.left - LANE * self.lanes["left"] if down > 1 else self.right + LANE * self.lanes["right"]
        x1, x2 = x1 + side * self.width_of[source] / 2, x2 + side * (self.width_of[dest] / 2 + 1)
        y1, y2 = y1 + 5, y2 - 5
        path = f"M{x1:.0f} {y1:.0f}C{lane:.0f} {y1:.0f} {lane:.0f} {y2:.0f} {x2:.0f} {y2:.0f}"
        return path, (x1 + x2) / 8 + lane * 0.75, (y1 + y2) / 2 + 4 + 13 * (number % 3 - 1), "middle"


def _wrapped(text: str) -> list[str]:
    return wrap(text, 34)


def svg(lifecycle: Lifecycle) -> str:
    """The picture of one lifecycle."""
    return Drawing(lifecycle).svg()
