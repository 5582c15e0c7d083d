SELECT queue, count(*), min(run_at) FROM (
  SELECT queue, run_at FROM rota_jobs INDEXED BY rota_jobs_held WHERE state = 'queued' AND due = 2 LIMIT ?
)
GROUP BY queue
