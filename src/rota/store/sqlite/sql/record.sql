INSERT INTO rota_attempts
  (job, lease_token, attempt, outcome, worker, started_at, finished_at, error_json, logs_json, cost_cents)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO NOTHING
