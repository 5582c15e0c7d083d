INSERT INTO rota_attempts (job, lease_token, attempt, outcome, worker, started_at, finished_at, cost_cents)
SELECT id, lease_token, attempt, 'succeeded', worker, started_at, finished_at, cost_cents
  FROM rota_jobs WHERE id = ? AND state = 'succeeded'
ON CONFLICT DO NOTHING
