-- The tenants, queues and tasks that have parked jobs: one index probe per answer.
WITH RECURSIVE lane (place) AS (
  SELECT (
    SELECT rowid FROM rota_jobs INDEXED BY rota_jobs_parked
    WHERE state = 'queued' AND due = 2
    ORDER BY tenant, queue, task LIMIT 1
  )
  UNION ALL
  SELECT coalesce(
    (
      SELECT beside.rowid FROM rota_jobs AS beside INDEXED BY rota_jobs_parked
      WHERE beside.state = 'queued' AND beside.due = 2 AND beside.tenant = seen.tenant
        AND beside.queue = seen.queue AND beside.task > seen.task
      ORDER BY beside.tenant, beside.queue, beside.task LIMIT 1
    ),
    (
      SELECT beside.rowid FROM rota_jobs AS beside INDEXED BY rota_jobs_parked
      WHERE beside.state = 'queued' AND beside.due = 2 AND beside.tenant = seen.tenant
        AND beside.queue > seen.queue
      ORDER BY beside.tenant, beside.queue, beside.task LIMIT 1
    ),
    (
      SELECT beyond.rowid FROM rota_jobs AS beyond INDEXED BY rota_jobs_parked
      WHERE beyond.state = 'queued' AND beyond.due = 2 AND beyond.tenant > seen.tenant
      ORDER BY beyond.tenant, beyond.queue, beyond.task LIMIT 1
    )
  )
  FROM lane JOIN rota_jobs AS seen ON seen.rowid = lane.place
)
SELECT tenant, queue, task FROM lane JOIN rota_jobs ON rota_jobs.rowid = lane.place
