SELECT queue, task, tenant, concurrency_key, units, started_at
FROM json_each(?) AS asked CROSS JOIN rota_jobs INDEXED BY rota_jobs_id ON rota_jobs.id = asked.value
