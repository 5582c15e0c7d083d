SELECT queue, task, tenant, concurrency_key FROM rota_jobs INDEXED BY rota_jobs_running
WHERE state = 'running'
LIMIT ?
