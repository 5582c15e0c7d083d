SELECT finished_at, id, queue, task, state, tenant, schedule FROM rota_jobs INDEXED BY rota_jobs_finished
WHERE state = ? AND finished_at < ? AND finished_at IS NOT NULL AND keep IS NULL
ORDER BY finished_at
LIMIT ?
