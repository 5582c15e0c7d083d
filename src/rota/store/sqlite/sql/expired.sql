SELECT {job} FROM rota_jobs INDEXED BY rota_jobs_running
WHERE state = 'running' AND lease_until <= ?
ORDER BY lease_until
LIMIT ?
