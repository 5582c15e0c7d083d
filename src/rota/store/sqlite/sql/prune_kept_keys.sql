DELETE FROM rota_kept_keys
WHERE kept_until <= ?
  OR (kept_until IS NULL AND NOT EXISTS (SELECT 1 FROM rota_jobs AS j WHERE j.id = job AND j.slot IS NOT NULL))
