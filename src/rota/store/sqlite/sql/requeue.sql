UPDATE rota_jobs SET
  state = 'queued', due = ?, run_at = ?, attempt = ?, output_json = ?, error_json = ?,
  started_at = coalesce(?, started_at), cost_cents = cost_cents + ?,
  progress_json = coalesce(?, progress_json), lease_until = NULL, worker = NULL
WHERE id = ? AND token = ? AND state = 'running'
RETURNING queue, task
