-- Of the last jobs that ended in a state: how many were read, how many are the tenant's.
SELECT count(*), coalesce(sum(tenant = :tenant), 0) FROM (
  SELECT tenant FROM rota_jobs INDEXED BY rota_jobs_finished
  WHERE state = :state AND finished_at IS NOT NULL
  ORDER BY finished_at DESC
  LIMIT :most
)
