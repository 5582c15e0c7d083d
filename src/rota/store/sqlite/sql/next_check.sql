SELECT min(due_at) FROM rota_schedules INDEXED BY rota_schedules_due WHERE enabled = 1 AND due_at > ?
