SELECT queue, task, count(*) FROM (
  SELECT queue, task, state, run_at FROM rota_jobs INDEXED BY rota_jobs_live
  WHERE finished_at IS NULL
  ORDER BY id
  LIMIT ?2
)
WHERE state = 'queued' AND run_at <= ?1
GROUP BY queue, task
ORDER BY queue, task
