-- Who did what. Append-only; an id is larger than all before it.
CREATE TABLE rota_audit (
  id          TEXT    NOT NULL,
  at          INTEGER NOT NULL,
  action      TEXT    NOT NULL,
  actor       TEXT    NOT NULL,
  role        TEXT,
  via         TEXT    NOT NULL,
  tenant      TEXT,
  object      TEXT,
  before_json TEXT,
  after_json  TEXT,
  result      TEXT    NOT NULL,
  message     TEXT,
  request_id  TEXT,
  address     TEXT
);

CREATE INDEX rota_audit_id ON rota_audit (id);
CREATE INDEX rota_audit_at ON rota_audit (at);
CREATE INDEX rota_audit_actor ON rota_audit (actor, id);
CREATE INDEX rota_audit_object ON rota_audit (object, id) WHERE object IS NOT NULL;
CREATE INDEX rota_audit_tenant ON rota_audit (tenant, id) WHERE tenant IS NOT NULL;

CREATE TRIGGER rota_audit_append_only BEFORE UPDATE ON rota_audit
BEGIN
  SELECT RAISE(ABORT, 'the audit log is append-only: no line of it is changed');
END;

