SELECT
  tenant, sum(state = 'queued' AND ready), sum(state = 'queued' AND NOT ready), sum(state = 'running'),
  min(iif(state = 'queued' AND ready, run_at, NULL))
FROM (
  SELECT tenant, state, run_at, due <> 0 OR run_at <= :now AS ready FROM rota_jobs INDEXED BY rota_jobs_live
  WHERE finished_at IS NULL ORDER BY id LIMIT :most
)
GROUP BY tenant
