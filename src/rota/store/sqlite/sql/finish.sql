-- :more: whether any of the changes has more to say than most do, so that the others need not be asked.
UPDATE rota_jobs AS held INDEXED BY rota_jobs_id SET
  state = :state, finished_at = :now, attempt = json_extract(change.value, '$[2]'),
  started_at = min(coalesce(json_extract(change.value, '$[3]'), started_at, :now), :now),
  output_json = json_extract(change.value, '$[4]'),
  error_json = iif(:more, json_extract(change.value, '$[5]'), NULL),
  cost_cents = cost_cents + iif(:more, json_extract(change.value, '$[6]'), 0),
  progress_json = iif(:more, coalesce(json_extract(change.value, '$[7]'), progress_json), progress_json),
  crashes = iif(:more, coalesce(json_extract(change.value, '$[9]'), crashes), crashes),
  snoozes = iif(:more, coalesce(json_extract(change.value, '$[10]'), snoozes), snoozes),
  lease_until = NULL, slot = NULL
FROM json_each(:changes) AS change
WHERE held.id = change.key AND {held}
