"""``rota config``: list the settings in force and their sources, and set one in its file."""

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
from ..parts.options import json_option
from ..parts.target import Target, pass_target, target_options

COLUMNS = (
    table.Column("SETTING"),
    table.Column("VALUE", yields=1),
    table.Column("SOURCE"),
    table.Column("RANGE", yields=2),
)
HERE = "rota config"

show_secrets = click.option("--show-secrets", is_flag=True, help="Show passwords.")


@click.group()
def config() -> None:
    """List, get and set settings."""


@config.command("list")
@json_option("items", "next")
@show_secrets
@target_options
@pass_target
def list_(target: Target, show_secrets: bool, as_json: bool) -> None:
    """List all settings: value, source and allowed range."""
    settings = explain(target.open().settings, show_secrets=show_secrets)
    if as_json:
        click.echo(json_text({"items": settings, "next": None}))
    else:
        table.print_table(COLUMNS, [_row(setting) for setting in settings])


def _row(setting: Mapping[str, Any]) -> tuple[str, ...]:
    name, value = setting["name"], setting["value"]
    return name, safe(to_text(value)) or "–", setting["source"], allowed(name)


@config.command()
@click.argument("key")
@show_secrets
@target_options
@pass_target
def get(target: Target, key: str, show_secrets: bool) -> None:
    """Print the value of KEY."""
    known(key, HERE)
    settings = explain(target.open().settings, show_secrets=show_secrets)
    click.echo(safe(to_text(next(setting["value"] for setting in settings if setting["name"] == key))))


@config.command("set", context_settings={"ignore_unknown_options": True})  # -5 is a value, not an option
@click.argument("key")
@click.argument("value")
@click.option("--file", "file", type=click.Path(dir_okay=False, path_type=Path),
              help="File to write.  [default: the rota.toml or pyproject.toml in use]")  # fmt: skip
def set_(key: str, value: str, file: Path | None) -> None:
    """Set KEY to VALUE in the configuration file and keep its comments.

    Write lists as a,b or as JSON. With - the VALUE is read from stdin, so that a password does not show
    in the process list. An empty VALUE removes the setting if it is optional.
    """
    result = _usable(key, read_text("-").strip() if value == "-" else value)
    file = file or config_file.in_force(Path())
    if file.name not in FILES:
        raise ConfigError(f"--file {str(file)!r}: rota reads {' and '.join(FILES)} only")
    config_file.write(file, key, result)
    shown = to_text(without_password(result) if is_hidden(key) else result)
    done = f"{key} = {safe(shown)}  written to" if result is not None else f"{key}  removed from"
    click.echo(f"{done} {safe(file)}; restart running workers and servers to apply it")
    _warn(file, key, result)


def _usable(key: str, text: str) -> Any:
    """The value of the text, or the error that the next start would raise."""
    value = checked(known(key, HERE), from_text(key, text, HERE), HERE)
    if key == "url":
        from ...store.open import open_store

        with suppress(MissingDriver):  # the workers may have a driver that is missing here
            open_store(value)
    return value


def _warn(file: Path, key: str, value: Any) -> None:
    """Print a warning if the new value does not take effect."""
    try:
        settings = load(folder=file.absolute().parent)
    except ConfigError as error:
        click.echo(f"rota: the settings are not valid yet: {safe(error)}", err=True)
        return
    source = sources_of(settings).get(key, "default")
    if value is not None and source != file.name:
        click.echo(f"rota: not in effect: {source} overrides it", err=True)
