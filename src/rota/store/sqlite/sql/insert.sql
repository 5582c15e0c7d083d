INSERT INTO rota_jobs (
  id, task, state, due, queue, tenant, rank, payload_json, max_attempts, run_at, created_at, timeout,
  backoff_json, key, slot, auto_remove, tags_json, parent, origin, schedule, scheduled_for
) VALUES (?, ?, 'queued', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO NOTHING
