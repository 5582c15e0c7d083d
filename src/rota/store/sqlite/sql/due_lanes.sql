-- most: how many jobs to read of each.
SELECT queue, task, count(*) FROM (
  SELECT * FROM (
    SELECT id, queue, task, state, run_at FROM rota_jobs INDEXED BY rota_jobs_live
    WHERE finished_at IS NULL
    ORDER BY id
    LIMIT :most
  )
  UNION
  SELECT * FROM (
    SELECT id, queue, task, state, run_at FROM rota_jobs INDEXED BY rota_jobs_ready
    WHERE state = 'queued' AND due = 1
    LIMIT :most
  )
)
WHERE state = 'queued' AND run_at <= :now
GROUP BY queue, task
ORDER BY queue, task
