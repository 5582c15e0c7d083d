UPDATE rota_jobs INDEXED BY rota_jobs_id SET
  state = 'queued', attempt = change.attempt, started_at = coalesce(change.began_at, started_at),
  output_json = change.output, error_json = change.error, cost_cents = cost_cents + change.cost,
  progress_json = coalesce(change.progress, progress_json),
  run_at = coalesce(change.again_at, ?2), due = coalesce(change.again_at, ?2) <= ?2,
  lease_until = NULL, worker = NULL
FROM (
  SELECT
    key AS id, json_extract(value, '$[1]') AS attempt, json_extract(value, '$[2]') AS began_at,
    json_extract(value, '$[3]') AS output, json_extract(value, '$[4]') AS error,
    json_extract(value, '$[5]') AS cost, json_extract(value, '$[6]') AS progress,
    json_extract(value, '$[7]') AS again_at
  FROM json_each(?1)
) AS change
WHERE rota_jobs.id = change.id
