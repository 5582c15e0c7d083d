-- A key may stay taken after its job has succeeded, for as long as asked, also when the job is deleted by age.
ALTER TABLE rota.keys ADD COLUMN kept_s double precision;  -- NULL: the key is free at the end
ALTER TABLE rota.keys ADD COLUMN kept_until timestamptz;  -- NULL: the job is live
CREATE INDEX keys_kept_until ON rota.keys (kept_until) WHERE kept_until IS NOT NULL;

COMMENT ON TABLE rota.keys IS 'The idempotency keys of live jobs, and those that are kept after a success: one job per tenant and key.';
