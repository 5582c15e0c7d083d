-- ?4: whether any of the changes has more to say than most do, so that the others need not be asked.
UPDATE rota_jobs INDEXED BY rota_jobs_id SET
  state = ?3, finished_at = ?2, attempt = change.attempt, started_at = coalesce(change.began_at, started_at),
  output_json = change.output, error_json = change.error, cost_cents = cost_cents + change.cost,
  progress_json = coalesce(change.progress, progress_json), lease_until = NULL, slot = NULL
FROM (
  SELECT
    key AS id, json_extract(value, '$[1]') AS attempt, json_extract(value, '$[2]') AS began_at,
    json_extract(value, '$[3]') AS output, iif(?4, json_extract(value, '$[4]'), NULL) AS error,
    iif(?4, json_extract(value, '$[5]'), 0) AS cost, iif(?4, json_extract(value, '$[6]'), NULL) AS progress
  FROM json_each(?1)
) AS change
WHERE rota_jobs.id = change.id
