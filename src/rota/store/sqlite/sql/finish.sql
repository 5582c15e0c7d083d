UPDATE rota_jobs INDEXED BY rota_jobs_id SET
  state = change.state, attempt = change.attempt, output_json = change.output, error_json = change.error,
  started_at = coalesce(change.began_at, started_at), finished_at = ?2,
  cost_cents = cost_cents + coalesce(change.cost, 0), progress_json = coalesce(change.progress, progress_json),
  lease_until = NULL, slot = NULL
FROM (
  SELECT
    json_extract(value, '$[0]') AS id, json_extract(value, '$[1]') AS token,
    json_extract(value, '$[2]') AS state, json_extract(value, '$[3]') AS attempt,
    json_extract(value, '$[4]') AS output, json_extract(value, '$[5]') AS error,
    json_extract(value, '$[6]') AS began_at, json_extract(value, '$[7]') AS cost,
    json_extract(value, '$[8]') AS progress
  FROM json_each(?1)
) AS change
WHERE rota_jobs.id = change.id AND rota_jobs.token = change.token AND rota_jobs.state = 'running'
RETURNING id, queue, task
