"""Data is found beside the package in a checkout, inside it in a wheel, and its absence is an error."""

from pathlib import Path

import pytest

from rho_spec import paths


def test_in_a_checkout_the_data_stands_beside_the_package() -> None:
    assert (paths.data_root() / "rules" / "ordering.toml").is_file()


def test_in_a_wheel_it_stands_inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "rho_spec"
    (package / "data" / "rules").mkdir(parents=True)
    monkeypatch.setattr(paths, "_PACKAGE", package)
    assert paths.data_root() == package / "data"


def test_a_missing_catalogue_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "_PACKAGE", tmp_path / "rho_spec")
    with pytest.raises(FileNotFoundError, match="installation is incomplete"):
        paths.data_root()
