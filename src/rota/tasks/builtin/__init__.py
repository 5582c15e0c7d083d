"""Built-in tasks: one module each, with a ``TaskSet`` named ``tasks`` and nothing that runs on import.

To add one, write ``builtin/NAME.py`` with ``tasks = TaskSet(prefix="NAME")``. An app has it only after
including it: ``from rota.tasks.builtin import NAME`` and ``app.include(NAME.tasks)``.
"""
