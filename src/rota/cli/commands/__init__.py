"""The commands of ``rota``: one module per command or group. ``root`` imports each one when it is called."""
