"""``rota demo``: a store, a worker and sample tasks in one process.

``tasks`` are the samples, written as a user would write them; ``feed`` enqueues them, ``console`` prints
events, ``show`` runs it all. Only the command ``rota demo`` may depend on this package.
"""
