SELECT {job} FROM rota_jobs WHERE rowid IN (SELECT value FROM json_each(?))
