-- The audit log as a hash chain: each seal covers a batch of entries and the seal before it.
ALTER TABLE rota_audit ADD COLUMN seal INTEGER;
CREATE INDEX rota_audit_unsealed ON rota_audit (id) WHERE seal IS NULL;
CREATE INDEX rota_audit_seal ON rota_audit (seal, id) WHERE seal IS NOT NULL;

CREATE TABLE rota_audit_seals (
  number    INTEGER PRIMARY KEY,
  previous  TEXT    NOT NULL,
  content   TEXT    NOT NULL,
  digest    TEXT    NOT NULL,
  entries   INTEGER NOT NULL,
  first_id  TEXT    NOT NULL,
  last_id   TEXT    NOT NULL,
  last_at   INTEGER NOT NULL,
  sealed_at INTEGER NOT NULL,
  pruned_at INTEGER
);

DROP TRIGGER rota_audit_append_only;

CREATE TRIGGER rota_audit_append_only BEFORE UPDATE ON rota_audit
WHEN OLD.seal IS NOT NULL OR NEW.seal IS NULL
  OR (NEW.id, NEW.at, NEW.action, NEW.actor, NEW.role, NEW.via, NEW.tenant, NEW.object, NEW.before_json,
      NEW.after_json, NEW.result, NEW.message, NEW.request_id, NEW.address)
  IS NOT (OLD.id, OLD.at, OLD.action, OLD.actor, OLD.role, OLD.via, OLD.tenant, OLD.object, OLD.before_json,
      OLD.after_json, OLD.result, OLD.message, OLD.request_id, OLD.address)
BEGIN
  SELECT RAISE(ABORT, 'the audit log is append-only: no line of it is changed');
END;

CREATE TRIGGER rota_audit_kept BEFORE DELETE ON rota_audit
WHEN NOT EXISTS (SELECT 1 FROM rota_audit_seals WHERE number = OLD.seal AND pruned_at IS NOT NULL)
BEGIN
  SELECT RAISE(ABORT, 'the audit log is append-only: its lines are deleted by age only');
END;
