SELECT queue, count(*), sum(run_at <= :now), min(run_at) FROM (
  SELECT queue, run_at FROM rota_jobs INDEXED BY rota_jobs_later
  WHERE state = 'queued' AND due = 0 ORDER BY run_at LIMIT :most
)
GROUP BY queue
