-- ?1: now, ?2: how many jobs to read of each.
SELECT queue, task, count(*) FROM (
  SELECT * FROM (
    SELECT id, queue, task, state, run_at FROM rota_jobs INDEXED BY rota_jobs_live
    WHERE finished_at IS NULL
    ORDER BY id
    LIMIT ?2
  )
  UNION
  SELECT * FROM (
    SELECT id, queue, task, state, run_at FROM rota_jobs INDEXED BY rota_jobs_ready
    WHERE state = 'queued' AND due = 1
    LIMIT ?2
  )
)
WHERE state = 'queued' AND run_at <= ?1
GROUP BY queue, task
ORDER BY queue, task
