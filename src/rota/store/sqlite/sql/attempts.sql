SELECT job, lease_token, attempt, outcome, worker, started_at, finished_at, error_json, logs_json, cost_cents
FROM rota_attempts WHERE job = ? ORDER BY lease_token
