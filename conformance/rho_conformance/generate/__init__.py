"""Scripts for a target: draw them, walk them, sweep them, play them, make them small, keep them as witnesses."""

from rho_conformance.generate.intents import ALPHABET, Intent
from rho_conformance.generate.interpret import perform_intents
from rho_conformance.generate.minimise import Minimal, minimise
from rho_conformance.generate.script import Bounds, Player, Script, play, violated
from rho_conformance.generate.search import Generated, draw_scripts, generate
from rho_conformance.generate.sweep import sweep, sweep_traces
from rho_conformance.generate.walks import Walk, walks
from rho_conformance.generate.witness import Replay, Witness, read_witness, replay, write_witness

__all__ = [
    "ALPHABET",
    "Bounds",
    "Generated",
    "Intent",
    "Minimal",
    "Player",
    "Replay",
    "Script",
    "Walk",
    "Witness",
    "draw_scripts",
    "generate",
    "minimise",
    "perform_intents",
    "play",
    "read_witness",
    "replay",
    "sweep",
    "sweep_traces",
    "violated",
    "walks",
    "write_witness",
]
