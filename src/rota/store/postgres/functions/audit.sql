-- The audit log.

-- Add the lines, in their order. JSON inside JSON travels as text: see rows.py.
CREATE FUNCTION rota.append_audit(lines json) RETURNS void
LANGUAGE sql
SET search_path = rota, pg_temp
AS $$
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
SET search_path = rota, pg_temp
SET enable_seqscan = off SET jit = off
AS $$
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
