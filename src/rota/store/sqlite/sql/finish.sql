-- ?4: whether any of the changes has more to say than most do, so that the others need not be asked.
UPDATE rota_jobs AS held INDEXED BY rota_jobs_id SET
  state = ?3, finished_at = ?2, attempt = json_extract(change.value, '$[2]'),
  started_at = coalesce(json_extract(change.value, '$[3]'), started_at),
  output_json = json_extract(change.value, '$[4]'),
  error_json = iif(?4, json_extract(change.value, '$[5]'), NULL),
  cost_cents = cost_cents + iif(?4, json_extract(change.value, '$[6]'), 0),
  progress_json = iif(?4, coalesce(json_extract(change.value, '$[7]'), progress_json), progress_json),
  crashes = iif(?4, coalesce(json_extract(change.value, '$[9]'), crashes), crashes),
  snoozes = iif(?4, coalesce(json_extract(change.value, '$[10]'), snoozes), snoozes),
  lease_until = NULL, slot = NULL
FROM json_each(?1) AS change
WHERE held.id = change.key AND {held}
