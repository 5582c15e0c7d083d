UPDATE rota_jobs SET token = token + 1, worker = ?, lease_until = ?
WHERE id IN (SELECT value FROM json_each(?))
