SELECT json_group_array(json_array(value, (
  SELECT count(*) FROM rota_jobs INDEXED BY rota_jobs_running_key
  WHERE state = 'running' AND concurrency_key = asked.value
)))
FROM json_each(?) AS asked
