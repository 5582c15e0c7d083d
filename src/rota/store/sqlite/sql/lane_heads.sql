-- The first held job of each task in some lanes of a queue.
WITH RECURSIVE lane (place) AS (
  SELECT (
    SELECT rowid FROM rota_jobs INDEXED BY rota_jobs_held
    WHERE state = 'queued' AND due = 2 AND queue = :queue AND tenant = json_extract(asked.value, '$[0]')
      AND lane = json_extract(asked.value, '$[1]')
    ORDER BY task, rank, run_at, id LIMIT 1
  )
  FROM json_each(:lanes) AS asked
  UNION ALL
  SELECT (
    SELECT beside.rowid FROM rota_jobs AS beside INDEXED BY rota_jobs_held
    WHERE beside.state = 'queued' AND beside.due = 2 AND beside.queue = seen.queue
      AND beside.tenant = seen.tenant AND beside.lane = seen.lane AND beside.task > seen.task
    ORDER BY beside.task, beside.rank, beside.run_at, beside.id LIMIT 1
  )
  FROM lane JOIN rota_jobs AS seen ON seen.rowid = lane.place
)
SELECT json_group_array(json_array({met}))
FROM lane CROSS JOIN rota_jobs ON rota_jobs.rowid = lane.place
