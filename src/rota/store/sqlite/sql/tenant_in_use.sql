SELECT
  (SELECT count(*) FROM (
     SELECT tenant FROM rota_jobs INDEXED BY rota_jobs_live
     WHERE finished_at IS NULL AND state = 'queued' LIMIT :most)
   WHERE tenant = :tenant),
  (SELECT count(*) FROM (
     SELECT tenant FROM rota_jobs INDEXED BY rota_jobs_running WHERE state = 'running' LIMIT :most)
   WHERE tenant = :tenant),
  (SELECT count(*) FROM (SELECT 1 FROM rota_schedules WHERE tenant = :tenant LIMIT :most)),
  (SELECT CAST(coalesce(sum(amount), 0) AS INTEGER) FROM rota_spending
   WHERE tenant = :tenant AND unit = 'bytes' AND begins >= :today),
  (SELECT coalesce(sum(amount), 0.0) FROM rota_spending
   WHERE tenant = :tenant AND unit = :unit AND begins >= :begins),
  (SELECT coalesce(sum(price), 0.0) FROM (
     SELECT tenant, price FROM rota_jobs INDEXED BY rota_jobs_running WHERE state = 'running' LIMIT :most)
   WHERE tenant = :tenant)
