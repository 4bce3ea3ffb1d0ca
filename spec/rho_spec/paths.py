"""Where the data files of the specification are: beside the package in a checkout, inside it in a wheel."""

from pathlib import Path
from typing import Final

_PACKAGE: Final = Path(__file__).parent


def data_root() -> Path:
    """The folder with `rules/`, `sources/`, `pages/`, `schemas/` and `scenarios/`.

    Raises `FileNotFoundError` when neither place holds the rules, which means a broken installation.
    """
    for candidate in (_PACKAGE.parent, _PACKAGE / "data"):
        if (candidate / "rules").is_dir():
            return candidate
    raise FileNotFoundError(f"no rules/ folder beside or inside {_PACKAGE}; the installation is incomplete")
