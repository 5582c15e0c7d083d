-- The queues and tasks that have ready jobs, and the first job of each: one index probe per answer.
WITH RECURSIVE lane (place) AS (
  SELECT (
    SELECT rowid FROM rota_jobs INDEXED BY rota_jobs_ready
    WHERE state = 'queued' AND due = 1
    ORDER BY queue, task, rank, run_at, id LIMIT 1
  )
  UNION ALL
  SELECT coalesce(
    (
      SELECT beside.rowid FROM rota_jobs AS beside INDEXED BY rota_jobs_ready
      WHERE beside.state = 'queued' AND beside.due = 1 AND beside.queue = seen.queue AND beside.task > seen.task
      ORDER BY beside.queue, beside.task, beside.rank, beside.run_at, beside.id LIMIT 1
    ),
    (
      SELECT beyond.rowid FROM rota_jobs AS beyond INDEXED BY rota_jobs_ready
      WHERE beyond.state = 'queued' AND beyond.due = 1 AND beyond.queue > seen.queue
      ORDER BY beyond.queue, beyond.task, beyond.rank, beyond.run_at, beyond.id LIMIT 1
    )
  )
  FROM lane JOIN rota_jobs AS seen ON seen.rowid = lane.place
)
SELECT queue, task, rank, run_at, id FROM lane JOIN rota_jobs ON rota_jobs.rowid = lane.place
