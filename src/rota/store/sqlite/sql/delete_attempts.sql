DELETE FROM rota_attempts WHERE job IN (SELECT value FROM json_each(?))
