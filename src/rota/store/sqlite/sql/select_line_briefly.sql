SELECT {met briefly} FROM rota_jobs INDEXED BY rota_jobs_ready
WHERE state = 'queued' AND due = 1 AND queue = ? AND task = ? AND rank <= ?
