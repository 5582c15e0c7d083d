"""The front door: help, version, public names, and that a look at the help loads nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import rota
from cli.command import environment, rota_command
from rota.cli.root import COMMANDS, root

HEAVY = ("rota.app", "rota.store.open", "msgspec", "asyncio", "psycopg", "sqlite3", "rich")


def test_help_names_every_command_and_loads_nothing_heavy(tmp_path: Path) -> None:
    code = (
        "import sys\nsys.argv = ['rota', '--help']\nfrom rota.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        f"print('loaded:', [name for name in {HEAVY!r} if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert "loaded: []" in done.stdout
    for name in COMMANDS:
        assert f"\n  {name} " in done.stdout


def test_importing_rota_loads_neither_stores_nor_drivers(tmp_path: Path) -> None:
    code = f"import sys, rota; print([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_loads_and_has_help(name: str) -> None:
    result = CliRunner().invoke(root, [name, "--help"])
    assert result.exit_code == 0
    assert result.output.startswith(f"Usage: root {name}")


def test_version_is_printed(tmp_path: Path) -> None:
    done = rota_command("--version", cwd=tmp_path)
    assert (done.returncode, done.stdout.strip()) == (0, f"rota {rota.__version__}")


def test_an_unknown_command_is_a_usage_error() -> None:
    result = CliRunner().invoke(root, ["jubs"])
    assert result.exit_code == 2
    assert "jubs" in result.output


@pytest.mark.parametrize("name", rota.__all__)
def test_every_public_name_resolves_and_is_listed(name: str) -> None:
    assert getattr(rota, name) is not None
    assert name in dir(rota)


def test_an_unknown_public_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="Rotta"):
        _ = rota.Rotta  # type: ignore[attr-defined]


def test_the_version_is_that_of_the_project() -> None:
    text = (Path(__file__).parents[2] / "pyproject.toml").read_text()
    assert f'\nversion = "{rota.__version__}"\n' in text
