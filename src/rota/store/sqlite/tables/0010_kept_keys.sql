-- Keys that stay taken after their job has succeeded, also when the job is deleted by age.
CREATE TABLE rota_kept_keys (
  tenant     TEXT    NOT NULL,
  key        TEXT    NOT NULL,
  job        TEXT    NOT NULL,
  kept_us    INTEGER NOT NULL,
  kept_until INTEGER,  -- NULL: the job is live
  PRIMARY KEY (tenant, key)
) WITHOUT ROWID;

CREATE INDEX rota_kept_keys_until ON rota_kept_keys (kept_until) WHERE kept_until IS NOT NULL;
CREATE INDEX rota_kept_keys_planned ON rota_kept_keys (job) WHERE kept_until IS NULL;
