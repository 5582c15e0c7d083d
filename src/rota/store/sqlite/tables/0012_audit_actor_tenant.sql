-- The tenant that an actor is limited to; NULL: it acts for all tenants, and a tenant does not see its name.
ALTER TABLE rota_audit ADD COLUMN actor_tenant TEXT;

DROP TRIGGER rota_audit_append_only;

CREATE TRIGGER rota_audit_append_only BEFORE UPDATE ON rota_audit
WHEN OLD.seal IS NOT NULL OR NEW.seal IS NULL
  OR (NEW.id, NEW.at, NEW.action, NEW.actor, NEW.role, NEW.via, NEW.tenant, NEW.object, NEW.before_json,
      NEW.after_json, NEW.result, NEW.message, NEW.request_id, NEW.address, NEW.actor_tenant)
  IS NOT (OLD.id, OLD.at, OLD.action, OLD.actor, OLD.role, OLD.via, OLD.tenant, OLD.object, OLD.before_json,
      OLD.after_json, OLD.result, OLD.message, OLD.request_id, OLD.address, OLD.actor_tenant)
BEGIN
  SELECT RAISE(ABORT, 'the audit log is append-only: no line of it is changed');
END;
