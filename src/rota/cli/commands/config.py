"""``rota config``: the settings in force, where each comes from, and setting one in its file."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from ...config import explain, load, sources_of
from ...config.passwords import without_password
from ...config.settings import allowed, checked, from_text, is_hidden, known, to_text
from ...config.sources import FILES
from ...errors import ConfigError, MissingDriver
from ...terminal import table
from ...terminal.text import json_text, safe
from ..parts import config_file
from ..parts.files import read_text
from ..parts.target import Target, pass_target, target_options

COLUMNS = (
    table.Column("SETTING"),
    table.Column("VALUE", yields=1),
    table.Column("SOURCE"),
    table.Column("RANGE", yields=2),
)
HERE = "rota config"

show_secrets = click.option("--show-secrets", is_flag=True, help="Passwords too.")


@click.group()
def config() -> None:
    """The settings in force, and where each comes from."""


@config.command("list")
@click.option("--json", "as_json", is_flag=True, help='One object: {"items": […], "next": null}.')
@show_secrets
@target_options
@pass_target
def list_(target: Target, show_secrets: bool, as_json: bool) -> None:
    """Every setting: value, where that comes from, and what it may be."""
    told = explain(target.open().settings, show_secrets=show_secrets)
    if as_json:
        click.echo(json_text({"items": told, "next": None}))
    else:
        table.print_table(COLUMNS, [_row(setting) for setting in told])


def _row(setting: Mapping[str, Any]) -> tuple[str, ...]:
    name, value = setting["name"], setting["value"]
    return name, safe(to_text(value)) or "–", setting["source"], allowed(name)


@config.command()
@click.argument("key")
@show_secrets
@target_options
@pass_target
def get(target: Target, key: str, show_secrets: bool) -> None:
    """The value of KEY, and nothing else."""
    known(key, HERE)
    told = {one["name"]: one for one in explain(target.open().settings, show_secrets=show_secrets)}
    click.echo(safe(to_text(told[key]["value"])))


@config.command("set", context_settings={"ignore_unknown_options": True})  # -5 is a value, not an option
@click.argument("key")
@click.argument("value")
@click.option("--file", "file", type=click.Path(dir_okay=False, path_type=Path),
              help="rota.toml or pyproject.toml.  [default: that in force, else rota.toml]")  # fmt: skip
def set_(key: str, value: str, file: Path | None) -> None:
    """Write KEY = VALUE into a file, which keeps its comments.

    Lists are written a,b or as JSON. With - the VALUE is read from standard input, so that a password
    does not show in the list of processes. An empty VALUE takes the setting out if it may be left out.
    """
    result = _usable(key, read_text("-").strip() if value == "-" else value)
    file = file or config_file.in_force(Path())
    if file.name not in FILES:
        raise ConfigError(f"--file {str(file)!r}: rota reads {' and '.join(FILES)} only")
    config_file.write(file, key, result)
    shown = to_text(without_password(result) if is_hidden(key) else result)
    done = f"{key} = {safe(shown)}  written to" if result is not None else f"{key}  taken out of"
    click.echo(f"{done} {safe(file)}; running workers and servers read it at their next start")
    _caution(file, key, result)


def _usable(key: str, text: str) -> Any:
    """The value that the text means, or the error that would come at the next start."""
    value = checked(known(key, HERE), from_text(key, text, HERE), HERE)
    if key == "url":
        from ...store.open import open_store

        with suppress(MissingDriver):  # the workers may have what this installation lacks
            open_store(value)
    return value


def _caution(file: Path, key: str, value: Any) -> None:
    """Say what keeps the new value from taking effect."""
    try:
        settings = load(folder=file.absolute().parent)
    except ConfigError as error:
        click.echo(f"rota: the settings cannot be used yet: {safe(error)}", err=True)
        return
    source = sources_of(settings).get(key, "default")
    if value is not None and source != file.name:
        click.echo(f"rota: not in force: {source} comes first", err=True)
