"""``rota completion``: shell completion of commands, options and choices."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

SHELLS = ("bash", "zsh", "fish")
VARIABLE = "_ROTA_COMPLETE"


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Print the completion script for a shell.

    \b
    bash:  rota completion bash > ~/.local/share/bash-completion/completions/rota
    zsh:   rota completion zsh > ~/.zfunc/_rota       (with ~/.zfunc in fpath)
    fish:  rota completion fish > ~/.config/fish/completions/rota.fish
    """
    from ..root import root

    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(root, {}, "rota", VARIABLE).source())
