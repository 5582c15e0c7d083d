UPDATE rota_jobs SET
  ({options except key, tenant}, payload_json, due, rank, run_at) =
  ({options values except key, tenant}, ?, ?, ?, ?),
  attempt = 0, error_json = NULL, cancel_requested = 0, crashes = 0, snoozes = 0, progress_json = NULL,
  started_at = NULL, lane = {laned}
WHERE id = ? AND state = 'queued'
