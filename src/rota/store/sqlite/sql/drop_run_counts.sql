DELETE FROM rota_run_counts WHERE (tenant, schedule) IN (
  SELECT tenant, name FROM rota_schedules WHERE id IN (SELECT value FROM json_each(?))
)
