SELECT id, state FROM rota_jobs WHERE id IN (SELECT value FROM json_each(?))
