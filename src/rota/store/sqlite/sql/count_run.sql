INSERT INTO rota_run_counts (
  tenant, schedule, day, succeeded, failed, cancelled, timed, total_us, longest_us
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET
  succeeded = succeeded + excluded.succeeded, failed = failed + excluded.failed,
  cancelled = cancelled + excluded.cancelled, timed = timed + excluded.timed,
  total_us = total_us + excluded.total_us, longest_us = max(longest_us, excluded.longest_us)
