SELECT name, full_ns FROM rota_limits WHERE name IN (SELECT value FROM json_each(?))
