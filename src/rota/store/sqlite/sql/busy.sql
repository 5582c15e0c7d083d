SELECT asked.tenant, asked.name
FROM (
  SELECT json_extract(value, '$[0]') AS tenant, json_extract(value, '$[1]') AS name FROM json_each(?)
) AS asked
WHERE EXISTS (
  SELECT 1 FROM rota_jobs INDEXED BY rota_jobs_schedule_live
  WHERE schedule = asked.name AND rota_jobs.tenant = asked.tenant AND finished_at IS NULL
)
