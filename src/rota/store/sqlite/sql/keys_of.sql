SELECT queue, tenant, concurrency_key
FROM json_each(?) AS asked CROSS JOIN rota_jobs INDEXED BY rota_jobs_id ON rota_jobs.id = asked.value
WHERE concurrency_key IS NOT NULL
