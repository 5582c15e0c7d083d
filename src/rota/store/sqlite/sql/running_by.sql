SELECT queue, task, tenant, count(*) FROM rota_jobs INDEXED BY rota_jobs_running
WHERE state = 'running'
GROUP BY queue, task, tenant
