SELECT id, state FROM rota_jobs WHERE id = ?
UNION ALL
SELECT id, state FROM rota_jobs WHERE tenant = ? AND slot = ?
UNION ALL
SELECT job, coalesce((SELECT state FROM rota_jobs WHERE id = job), 'succeeded') FROM rota_kept_keys
WHERE tenant = ? AND key = ? AND kept_until > ?
