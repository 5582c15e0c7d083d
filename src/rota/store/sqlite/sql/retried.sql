-- The jobs that strict keys wait for, due or not.
SELECT json_group_array(json_array({met of rota_jobs}))
FROM json_each(?) AS asked CROSS JOIN rota_jobs INDEXED BY rota_jobs_retried
WHERE state = 'queued' AND concurrency_key = asked.value AND (attempt > 0 OR crashes > 0)
