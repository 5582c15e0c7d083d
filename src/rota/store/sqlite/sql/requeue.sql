UPDATE rota_jobs AS held INDEXED BY rota_jobs_id SET
  state = 'queued', attempt = json_extract(change.value, '$[2]'),
  started_at = coalesce(json_extract(change.value, '$[3]'), started_at),
  output_json = json_extract(change.value, '$[4]'), error_json = json_extract(change.value, '$[5]'),
  cost_cents = cost_cents + json_extract(change.value, '$[6]'),
  progress_json = coalesce(json_extract(change.value, '$[7]'), progress_json),
  run_at = coalesce(json_extract(change.value, '$[8]'), :now),
  crashes = coalesce(json_extract(change.value, '$[9]'), crashes),
  snoozes = coalesce(json_extract(change.value, '$[10]'), snoozes),
  expires_at = iif(
    json_extract(change.value, '$[3]') IS NULL AND json_extract(change.value, '$[9]') IS NULL, expires_at, NULL),
  due = coalesce(json_extract(change.value, '$[8]'), :now) <= :now,
  lease_until = NULL, worker = NULL, lane = {laned of held}
FROM json_each(:changes) AS change
WHERE held.id = change.key AND {held}
