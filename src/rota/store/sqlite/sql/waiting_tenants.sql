SELECT DISTINCT tenant FROM (
  SELECT tenant FROM rota_jobs INDEXED BY rota_jobs_live
  WHERE finished_at IS NULL AND state IN ('queued', 'running') LIMIT :read
)
WHERE tenant > :after
ORDER BY tenant
LIMIT :most
