WITH RECURSIVE {strands}, running AS (
  SELECT count(*) AS jobs, coalesce(sum(price), 0.0) AS reserved FROM (
    SELECT tenant, price FROM rota_jobs INDEXED BY rota_jobs_running WHERE state = 'running'
    LIMIT CASE WHEN :most > 0 THEN 100000 ELSE 0 END)
  WHERE tenant = :tenant
)
SELECT
  CASE WHEN :tenant = 'default' THEN
    (SELECT count(*) FROM (SELECT 1 FROM (
       SELECT tenant FROM rota_jobs INDEXED BY rota_jobs_live
       WHERE finished_at IS NULL AND state = 'queued' LIMIT 200000)
     WHERE tenant = 'default' LIMIT :most))
  ELSE
    (SELECT count(*) FROM (
       SELECT 1 FROM rota_jobs INDEXED BY rota_jobs_beside
       WHERE state = 'queued' AND due <> 1 AND tenant = :tenant AND tenant <> 'default'
       UNION ALL
       SELECT 1 FROM {strand jobs}
       WHERE waits.tenant = :tenant
       LIMIT :most))
  END,
  running.jobs,
  (SELECT count(*) FROM (SELECT 1 FROM rota_schedules WHERE tenant = :tenant LIMIT :most)),
  0,
  (SELECT coalesce(sum(amount), 0.0) FROM rota_spending
   WHERE tenant = :tenant AND unit = :unit AND begins >= :begins),
  running.reserved
FROM running
