SELECT (
  SELECT max(id) FROM rota_jobs INDEXED BY rota_jobs_tenant_schedule
  WHERE schedule = json_extract(value, '$[1]') AND tenant = json_extract(value, '$[0]')
)
FROM json_each(?)
