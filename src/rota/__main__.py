"""``python -m rota``: the same as the command ``rota``."""

from .cli import main

if __name__ == "__main__":
    main()
