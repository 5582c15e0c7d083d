UPDATE rota_jobs SET
  state = ?, attempt = ?, output_json = ?, error_json = ?, started_at = coalesce(?, started_at), finished_at = ?,
  cost_cents = cost_cents + ?, progress_json = coalesce(?, progress_json), lease_until = NULL, slot = NULL
WHERE id = ? AND token = ? AND state = 'running'
RETURNING queue, task
