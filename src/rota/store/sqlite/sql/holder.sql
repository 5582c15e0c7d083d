SELECT id, state FROM rota_jobs WHERE id = ?
UNION ALL
SELECT id, state FROM rota_jobs WHERE tenant = ? AND slot = ?
