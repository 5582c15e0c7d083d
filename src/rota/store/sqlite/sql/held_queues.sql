-- The queues that have held jobs: one index probe each.
WITH RECURSIVE held (queue) AS (
  SELECT min(queue) FROM rota_jobs INDEXED BY rota_jobs_held WHERE state = 'queued' AND due = 2
  UNION ALL
  SELECT (
    SELECT min(beyond.queue) FROM rota_jobs AS beyond INDEXED BY rota_jobs_held
    WHERE beyond.state = 'queued' AND beyond.due = 2 AND beyond.queue > held.queue
  )
  FROM held WHERE held.queue IS NOT NULL
)
SELECT queue FROM held WHERE queue IS NOT NULL LIMIT ?
