SELECT {job} FROM rota_jobs
WHERE concurrency_key = ? AND (attempt > 0 OR crashes > 0) AND state = 'queued'
ORDER BY rank, run_at, id
LIMIT ?
