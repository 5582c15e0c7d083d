-- The tenants that wait in a queue at a rank: one index probe each.
WITH RECURSIVE found (tenant) AS (
  SELECT (
    SELECT tenant FROM rota_jobs INDEXED BY rota_jobs_tenants
    WHERE state = 'queued' AND due = 1 AND lane IS NOT NULL AND queue = :queue AND rank = :rank
    ORDER BY tenant LIMIT 1
  )
  UNION ALL
  SELECT (
    SELECT beside.tenant FROM rota_jobs AS beside INDEXED BY rota_jobs_tenants
    WHERE beside.state = 'queued' AND beside.due = 1 AND beside.lane IS NOT NULL AND beside.queue = :queue
      AND beside.rank = :rank AND beside.tenant > found.tenant
    ORDER BY beside.tenant LIMIT 1
  )
  FROM found WHERE found.tenant IS NOT NULL
  LIMIT :most
)
SELECT json_group_array(tenant) FROM found WHERE tenant IS NOT NULL
