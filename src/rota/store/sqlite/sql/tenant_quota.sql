SELECT
  CASE WHEN ? = 'default' THEN
    (SELECT count(*) FROM (SELECT 1 FROM (
       SELECT tenant FROM rota_jobs INDEXED BY rota_jobs_live
       WHERE finished_at IS NULL AND state = 'queued' LIMIT 200000)
     WHERE tenant = 'default' LIMIT ?))
  ELSE
    (SELECT count(*) FROM (
       SELECT 1 FROM rota_jobs INDEXED BY rota_jobs_of_tenant
       WHERE tenant = ? AND tenant <> 'default' AND finished_at IS NULL AND state = 'queued' LIMIT ?))
  END,
  (SELECT count(*) FROM (SELECT 1 FROM rota_schedules WHERE tenant = ? LIMIT ?))
