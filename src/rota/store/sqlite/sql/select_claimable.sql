-- What is marked as due is due: the clock of this process may be a moment behind that of the enqueuer.
SELECT rowid, rank, run_at, id FROM rota_jobs INDEXED BY rota_jobs_ready
WHERE state = 'queued' AND due = 1 AND queue = ? AND task = ? AND rank <= ?
