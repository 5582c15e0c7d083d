SELECT count(*), min(run_at) FROM (
  SELECT run_at FROM rota_jobs INDEXED BY rota_jobs_ready
  WHERE state = 'queued' AND due = 1 AND queue = ? LIMIT ?
)
