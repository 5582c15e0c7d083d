DELETE FROM rota_schedules WHERE id IN (SELECT value FROM json_each(?)) RETURNING id
