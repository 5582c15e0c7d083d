UPDATE rota_jobs SET due = 2
WHERE rowid IN (
  SELECT rowid FROM rota_jobs INDEXED BY rota_jobs_ready
  WHERE state = 'queued' AND due = 1 AND queue = ? AND task = ? AND (rank, run_at, id) < (?, ?, ?)
    AND tenant IN (SELECT value FROM json_each(?))
)
