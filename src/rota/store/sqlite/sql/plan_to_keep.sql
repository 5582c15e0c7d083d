INSERT INTO rota_kept_keys (tenant, key, job, kept_us) VALUES (?, ?, ?, ?)
ON CONFLICT (tenant, key) DO UPDATE SET job = excluded.job, kept_us = excluded.kept_us, kept_until = NULL
