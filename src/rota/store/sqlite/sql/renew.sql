UPDATE rota_jobs INDEXED BY rota_jobs_id SET lease_until = :until
FROM (
  SELECT json_extract(value, '$[0]') AS id, json_extract(value, '$[1]') AS lease_token FROM json_each(:leases)
) AS lease
WHERE rota_jobs.id = lease.id AND rota_jobs.lease_token = lease.lease_token AND rota_jobs.worker = :worker
  AND rota_jobs.state = 'running'
RETURNING id
