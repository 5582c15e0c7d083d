-- The audit log: who did what. Append-only; rota.prune_audit alone deletes.

CREATE TABLE rota.audit (
    -- a number rather than a time: it grows in the order of adding even when the clock steps back
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at timestamptz NOT NULL,
    action text COLLATE "C" NOT NULL,
    actor text COLLATE "C" NOT NULL,
    role text COLLATE "C",
    via text COLLATE "C" NOT NULL,
    tenant text COLLATE "C",
    object text COLLATE "C",
    before json,
    after json,
    result text COLLATE "C" NOT NULL,
    message text,
    request_id text COLLATE "C",
    address text COLLATE "C"
);
CREATE INDEX audit_at ON rota.audit (at);
CREATE INDEX audit_action ON rota.audit (action, id);
CREATE INDEX audit_actor ON rota.audit (actor, id);
CREATE INDEX audit_object ON rota.audit (object, id);
CREATE INDEX audit_tenant ON rota.audit (tenant, id);

CREATE TRIGGER keep_audit BEFORE UPDATE OR DELETE OR TRUNCATE ON rota.audit
   FOR EACH STATEMENT EXECUTE FUNCTION rota.keep_audit();

COMMENT ON TABLE rota.audit IS 'Who did what. Append-only: only rota.prune_audit deletes old lines.';
