SELECT count(*) FROM (
  SELECT 1 FROM rota_jobs INDEXED BY rota_jobs_waiting WHERE state = 'waiting' LIMIT ?
)
