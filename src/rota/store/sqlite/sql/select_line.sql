-- As select_claimable, with all that rules need to know.
SELECT {met} FROM rota_jobs INDEXED BY rota_jobs_ready
WHERE state = 'queued' AND due = 1 AND queue = ? AND task = ? AND rank <= ?
