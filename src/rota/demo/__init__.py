"""``rota demo``: a store, a worker and sample tasks in one process, for a first look.

``tasks`` are the samples, written as a user would write them; ``feed`` enqueues them, ``telling`` says
what happens, ``show`` runs it all. Nothing outside this folder and its command may depend on it.
"""
