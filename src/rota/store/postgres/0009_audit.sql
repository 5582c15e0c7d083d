-- The audit log: who did what. It is only added to; rota.prune_audit alone forgets.

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

CREATE FUNCTION rota.keep_audit() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' AND current_setting('rota.pruning', true) = 'on' THEN
        RETURN NULL;
    END IF;
    RAISE insufficient_privilege USING
        MESSAGE = format('the audit log is only added to: %s is refused', TG_OP),
        HINT = 'Use rota.prune_audit to forget what is old.';
END
$$;
CREATE TRIGGER keep_audit BEFORE UPDATE OR DELETE OR TRUNCATE ON rota.audit
   FOR EACH STATEMENT EXECUTE FUNCTION rota.keep_audit();

-- Add the lines, in their order. JSON inside JSON travels as text: see rows.py.
CREATE FUNCTION rota.append_audit(lines json) RETURNS void
LANGUAGE sql AS $$
    INSERT INTO rota.audit (
        at, action, actor, role, via, tenant, object, before, after, result, message, request_id, address)
    SELECT l.at, l.action, l.actor, l.role, l.via, l.tenant, l.object, l.before_json::json, l.after_json::json,
           l.result, l.message, l.request_id, l.address
      FROM json_array_elements(lines) WITH ORDINALITY AS x(line, ord), LATERAL json_to_record(line) AS l(
           at timestamptz, action text, actor text, role text, via text, tenant text, object text, before_json text,
           after_json text, result text, message text, request_id text, address text)
     ORDER BY ord
$$;

-- Forget at most lim lines older than this, the oldest first; how many.
CREATE FUNCTION rota.prune_audit(older_than timestamptz, lim integer) RETURNS integer
LANGUAGE plpgsql
SET enable_seqscan = off SET jit = off AS $$
DECLARE
    gone integer;
BEGIN
    PERFORM set_config('rota.pruning', 'on', true);
    DELETE FROM rota.audit WHERE id = ANY (ARRAY(
        SELECT a.id FROM rota.audit AS a WHERE a.at < older_than ORDER BY a.at LIMIT lim FOR UPDATE SKIP LOCKED));
    GET DIAGNOSTICS gone = ROW_COUNT;
    PERFORM set_config('rota.pruning', 'off', true);
    RETURN gone;
END
$$;

INSERT INTO rota.migrations (version, name) VALUES (9, '0009_audit');
