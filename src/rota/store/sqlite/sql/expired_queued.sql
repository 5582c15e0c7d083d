SELECT {job} FROM rota_jobs INDEXED BY rota_jobs_expires
WHERE expires_at IS NOT NULL AND state = 'queued' AND expires_at <= ?
ORDER BY expires_at
LIMIT ?
