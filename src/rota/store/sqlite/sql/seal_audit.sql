UPDATE rota_audit SET seal = ?
WHERE seal IS NULL AND id IN (SELECT value FROM json_each(?))
