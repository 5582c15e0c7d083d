"""The wording of the help: every command and every option is described in the same form."""

from __future__ import annotations

import re
from collections.abc import Iterator

import click
import pytest

from rota.cli.root import COMMANDS, root

OPTION_HELP = re.compile(r"[A-Z(\[].*[.\]]", re.DOTALL)
COMMAND_HELP = re.compile(r"[A-Z].*\.", re.DOTALL)


def commands(command: click.Command, path: str) -> Iterator[tuple[str, click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        ctx = click.Context(command)
        for name in command.list_commands(ctx):
            found = command.get_command(ctx, name)
            assert found is not None
            yield from commands(found, f"{path} {name}")


ALL = dict(commands(root, "rota"))


@pytest.mark.parametrize("path", ALL)
def test_every_option_has_help_that_is_a_sentence_or_a_default(path: str) -> None:
    options = [param for param in ALL[path].params if isinstance(param, click.Option)]
    wrong = {
        option.opts[0]: option.help for option in options if not OPTION_HELP.fullmatch(option.help or "")
    }
    assert wrong == {}


@pytest.mark.parametrize("path", ALL)
def test_every_command_is_described_by_a_sentence(path: str) -> None:
    text = (ALL[path].help or "").split("\n\n")[0].strip()
    assert COMMAND_HELP.fullmatch(text), text


@pytest.mark.parametrize("path", ALL)
def test_durations_and_times_have_one_metavar_each(path: str) -> None:
    assert {param.metavar for param in ALL[path].params}.isdisjoint({"LENGTH", "INSTANT", "WHEN", "S"})


@pytest.mark.parametrize("name", COMMANDS)
def test_the_summary_of_a_command_is_a_sentence(name: str) -> None:
    assert COMMAND_HELP.fullmatch(COMMANDS[name][1])
