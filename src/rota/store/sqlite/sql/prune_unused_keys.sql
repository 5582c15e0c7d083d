-- Planned for a job that did not succeed.
DELETE FROM rota_kept_keys INDEXED BY rota_kept_keys_planned
WHERE kept_until IS NULL AND NOT EXISTS (SELECT 1 FROM rota_jobs AS j WHERE j.id = job AND j.slot IS NOT NULL)
