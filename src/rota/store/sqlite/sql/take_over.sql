UPDATE rota_jobs SET lease_token = lease_token + 1, worker = ?, lease_until = ?
WHERE id IN (SELECT value FROM json_each(?))
