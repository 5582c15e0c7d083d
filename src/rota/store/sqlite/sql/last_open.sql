-- The last job of a lane that a claim could reach, were it to take from this lane alone.
SELECT rank, run_at, id FROM rota_jobs INDEXED BY rota_jobs_ready
WHERE state = 'queued' AND due = 1 AND queue = ? AND task = ?
  AND tenant NOT IN (SELECT value FROM json_each(?))
ORDER BY rank, run_at, id
LIMIT 1 OFFSET ?
