-- The first job of each lane of held jobs after a place: one index probe each. Of closed queues and tenants only one.
WITH RECURSIVE lane (place, n) AS (
  SELECT (
    SELECT rowid FROM rota_jobs INDEXED BY rota_jobs_held
    WHERE state = 'queued' AND due = 2 AND (queue, tenant, lane, task) > (:queue, :tenant, :lane, :task)
    ORDER BY queue, tenant, lane, task, rank, run_at, id LIMIT 1
  ), 1
  UNION ALL
  SELECT coalesce(
    iif(seen.queue IN (SELECT value FROM json_each(:queues)) OR seen.tenant IN (SELECT value FROM json_each(:tenants)),
      NULL,
      coalesce(
        (
          SELECT beside.rowid FROM rota_jobs AS beside INDEXED BY rota_jobs_held
          WHERE beside.state = 'queued' AND beside.due = 2 AND beside.queue = seen.queue
            AND beside.tenant = seen.tenant AND beside.lane = seen.lane AND beside.task > seen.task
          ORDER BY beside.task, beside.rank, beside.run_at, beside.id LIMIT 1
        ),
        (
          SELECT beside.rowid FROM rota_jobs AS beside INDEXED BY rota_jobs_held
          WHERE beside.state = 'queued' AND beside.due = 2 AND beside.queue = seen.queue
            AND beside.tenant = seen.tenant AND beside.lane > seen.lane
          ORDER BY beside.lane, beside.task, beside.rank, beside.run_at, beside.id LIMIT 1
        )
      )
    ),
    iif(seen.queue IN (SELECT value FROM json_each(:queues)),
      NULL,
      (
        SELECT beside.rowid FROM rota_jobs AS beside INDEXED BY rota_jobs_held
        WHERE beside.state = 'queued' AND beside.due = 2 AND beside.queue = seen.queue
          AND beside.tenant > seen.tenant
        ORDER BY beside.tenant, beside.lane, beside.task, beside.rank, beside.run_at, beside.id LIMIT 1
      )
    ),
    (
      SELECT beyond.rowid FROM rota_jobs AS beyond INDEXED BY rota_jobs_held
      WHERE beyond.state = 'queued' AND beyond.due = 2 AND beyond.queue > seen.queue
      ORDER BY beyond.queue, beyond.tenant, beyond.lane, beyond.task, beyond.rank, beyond.run_at, beyond.id LIMIT 1
    )
  ), n + 1
  FROM lane JOIN rota_jobs AS seen ON seen.rowid = lane.place
  WHERE n < :most
)
SELECT json_group_array(json_array({met}))
FROM lane CROSS JOIN rota_jobs ON rota_jobs.rowid = lane.place
