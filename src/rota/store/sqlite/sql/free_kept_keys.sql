DELETE FROM rota_kept_keys
WHERE (tenant, key, job) IN (
  SELECT tenant, key, id FROM rota_jobs WHERE id IN (SELECT value FROM json_each(?)) AND key IS NOT NULL
)
