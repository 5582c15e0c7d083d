UPDATE OR IGNORE rota_jobs SET
  state = 'queued', due = ?, run_at = ?, attempt = 0, slot = key, output_json = NULL, progress_json = NULL,
  started_at = NULL, finished_at = NULL, worker = NULL, cancel_requested = 0, crashes = 0,
  snoozes = 0, expires_at = NULL
WHERE id = ?
