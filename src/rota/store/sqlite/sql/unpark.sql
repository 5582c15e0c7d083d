UPDATE rota_jobs SET due = 1
WHERE rowid IN (
  SELECT rowid FROM rota_jobs INDEXED BY rota_jobs_parked
  WHERE state = 'queued' AND due = 2 AND tenant = ? AND queue = ? AND task = ?
  ORDER BY rank, run_at, id
  LIMIT ?
)
