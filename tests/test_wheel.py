"""The wheel holds what it must and nothing else, and works away from the checkout."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def run(*command: str, cwd: Path, **environment: str) -> str:
    done = subprocess.run(
        command, cwd=cwd, env={**os.environ, **environment}, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built without a network and unpacked as an installer would."""
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT), cwd=folder)
    [wheel] = folder.glob("*.whl")
    target = folder / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(target)
    return target


def test_the_top_level_is_ours_alone(installed: Path) -> None:
    names = {p.name for p in installed.iterdir() if not p.name.endswith(".dist-info")}
    assert names == {"rho_core", "rho_spec", "rho_conformance", "rho_adapters"}
    assert all((installed / name / "py.typed").is_file() for name in names)


def test_the_core_imports_from_an_empty_environment(installed: Path, tmp_path: Path) -> None:
    code = "import sys; sys.path.insert(0, sys.argv[1]); import rho_core; print(rho_core.__file__)"
    told = run(sys.executable, "-I", "-S", "-c", code, str(installed), cwd=tmp_path)
    assert told.strip().startswith(str(installed))


def test_the_suite_finds_its_data_in_the_wheel(installed: Path, tmp_path: Path) -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv.pop(1)); import rho_spec, rho_conformance.cli as cli\n"
        "assert 'site' in rho_spec.__file__, rho_spec.__file__\n"
        "sys.exit(cli.main(sys.argv[1:]))"
    )
    arguments = ["conform", "core", "--rule", "RHO-ORD-1", "--examples", "0", "--format", "json"]
    told = run(sys.executable, "-c", code, str(installed), *arguments, cwd=tmp_path)
    assert json.loads(told)["verdicts"]["RHO-ORD-1"]["verdict"] == "pass"


def test_without_the_extra_the_command_says_which_one(installed: Path, tmp_path: Path) -> None:
    code = "import sys; sys.path.insert(0, sys.argv[1]); from rho_core._entry import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code, str(installed)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 4 and "rho-core[conformance]" in done.stderr


@pytest.mark.parametrize(
    "path",
    [
        "rho_adapters/embedded/tools.jinja",
        "rho_conformance/report/templates",
        "rho_spec/data/lifecycles/run.toml",
        "rho_spec/data/schemas",
    ],
)
def test_the_data_of_the_packages_is_in_the_wheel(installed: Path, path: str) -> None:
    assert (installed / path).exists()


def test_the_adapters_need_anyio_and_pydantic_alone(installed: Path, tmp_path: Path) -> None:
    """Clients, servers and SDKs are imported by the module that needs them, and by no other."""
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import rho_adapters, rho_adapters.tools, rho_adapters.stores\n"
        "print(sorted({m.partition('.')[0] for m in sys.modules} & set(sys.argv[2:])))"
    )
    heavy = ("openai", "anthropic", "mcp", "httpx2", "starlette", "opentelemetry", "rich", "typer", "prompt_toolkit")
    assert run(sys.executable, "-c", code, str(installed), *heavy, cwd=tmp_path).strip() == "[]"
