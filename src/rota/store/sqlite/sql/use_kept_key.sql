UPDATE rota_kept_keys SET kept_until = NULL
WHERE (tenant, key, job) = (SELECT tenant, key, id FROM rota_jobs WHERE id = ?)
