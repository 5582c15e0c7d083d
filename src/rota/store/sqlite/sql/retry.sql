UPDATE OR IGNORE rota_jobs SET
  state = 'queued', due = ?, run_at = ?, attempt = 0, slot = key, output_json = NULL, progress_json = NULL,
  started_at = NULL, finished_at = NULL, worker = NULL, cancel_requested = 0, crashes = 0,
  snoozes = 0, expires_at = NULL, lane = {laned}
WHERE id = ? AND NOT EXISTS (
  SELECT 1 FROM rota_kept_keys AS k
  WHERE k.tenant = rota_jobs.tenant AND k.key = rota_jobs.key AND k.job <> rota_jobs.id AND k.kept_until > ?
)
