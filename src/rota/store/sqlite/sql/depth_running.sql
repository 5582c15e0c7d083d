SELECT queue, count(*) FROM (
  SELECT queue FROM rota_jobs INDEXED BY rota_jobs_running WHERE state = 'running' LIMIT ?
)
GROUP BY queue
