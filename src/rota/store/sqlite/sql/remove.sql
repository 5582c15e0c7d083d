DELETE FROM rota_jobs
WHERE state = 'running' AND (id, lease_token, worker) IN (
  SELECT key, json_extract(value, '$[0]'), json_extract(value, '$[1]') FROM json_each(?)
)
