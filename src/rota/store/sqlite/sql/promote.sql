UPDATE rota_jobs SET due = 1, lane = {laned}
WHERE rowid IN (
  SELECT rowid FROM rota_jobs INDEXED BY rota_jobs_later
  WHERE state = 'queued' AND due = 0 AND run_at <= ?
  ORDER BY run_at
  LIMIT 1000
)
