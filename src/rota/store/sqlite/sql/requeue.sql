UPDATE rota_jobs INDEXED BY rota_jobs_id SET
  state = 'queued', attempt = change.attempt, output_json = change.output, error_json = change.error,
  started_at = coalesce(change.began_at, started_at),
  cost_cents = cost_cents + coalesce(change.cost, 0), progress_json = coalesce(change.progress, progress_json),
  run_at = coalesce(change.again_at, ?2), due = coalesce(change.again_at, ?2) <= ?2,
  lease_until = NULL, worker = NULL
FROM (
  SELECT
    json_extract(value, '$[0]') AS id, json_extract(value, '$[1]') AS token,
    json_extract(value, '$[3]') AS attempt,
    json_extract(value, '$[4]') AS output, json_extract(value, '$[5]') AS error,
    json_extract(value, '$[6]') AS began_at, json_extract(value, '$[7]') AS cost,
    json_extract(value, '$[8]') AS progress, json_extract(value, '$[9]') AS again_at
  FROM json_each(?1)
) AS change
WHERE rota_jobs.id = change.id AND rota_jobs.token = change.token AND rota_jobs.state = 'running'
RETURNING id, queue, task
