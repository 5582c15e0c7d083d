SELECT {schedule} FROM rota_schedules INDEXED BY rota_schedules_due
WHERE enabled = 1 AND due_at <= ?
ORDER BY due_at, id
LIMIT ?
