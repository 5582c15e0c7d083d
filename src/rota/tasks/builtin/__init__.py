"""Built-in tasks: one module each, with a ``TaskSet`` named ``tasks`` and nothing that runs on import.

To add one, write ``builtin/<name>.py`` with ``tasks = TaskSet(prefix="<name>")``. An app has it only after
including it: ``from rota.tasks.builtin import sql`` and ``app.include(sql.tasks)``.
"""
