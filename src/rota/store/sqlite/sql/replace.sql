UPDATE rota_jobs SET
  task = ?, due = ?, queue = ?, rank = ?, payload_json = ?, max_attempts = ?, run_at = ?, timeout = ?,
  backoff_json = ?, auto_remove = ?, tags_json = ?, parent = ?, origin = ?, schedule = ?, scheduled_for = ?,
  attempt = 0, error_json = NULL, cancel_requested = 0
WHERE id = ? AND state = 'queued'
