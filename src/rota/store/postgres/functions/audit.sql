-- The audit log.

-- Add the lines, in their order. JSON inside JSON travels as text: see rows.py.
CREATE FUNCTION rota.append_audit(lines json) RETURNS void
LANGUAGE sql
SET search_path = rota, pg_temp
AS $$
    INSERT INTO rota.audit (
        at, action, actor, role, via, tenant, object, before, after, result, message, request_id, address,
        actor_tenant)
    SELECT l.at, l.action, l.actor, l.role, l.via, l.tenant, l.object, l.before_json::json, l.after_json::json,
           l.result, l.message, l.request_id, l.address, l.actor_tenant
      FROM json_array_elements(lines) WITH ORDINALITY AS x(line, ord), LATERAL json_to_record(line) AS l(
           at timestamptz, action text, actor text, role text, via text, tenant text, object text, before_json text,
           after_json text, result text, message text, request_id text, address text,
           actor_tenant text)
     ORDER BY ord
$$;

-- Put these lines under the next seal; false if others have sealed meanwhile. Never waits for another.
CREATE FUNCTION rota.seal_audit(seal json, lines bigint[]) RETURNS boolean
LANGUAGE plpgsql
SET search_path = rota, pg_temp
SET enable_seqscan = off SET jit = off
AS $$
DECLARE
    made rota.audit_seals := json_populate_record(NULL::rota.audit_seals, seal);
BEGIN
    IF NOT pg_try_advisory_xact_lock(hashtextextended('rota.audit_seals', 0)) THEN
        RETURN false;
    END IF;
    IF coalesce((SELECT max(s.number) FROM rota.audit_seals AS s), 0) <> made.number - 1
       OR (SELECT count(*) FROM rota.audit AS a WHERE a.id = ANY (lines) AND a.seal IS NULL) <> cardinality(lines) THEN
        RETURN false;
    END IF;
    INSERT INTO rota.audit_seals VALUES (made.*);
    UPDATE rota.audit AS a SET seal = made.number WHERE a.id = ANY (lines);
    RETURN true;
END
$$;

-- Forget about lim lines older than this, the oldest first, in whole batches that are sealed; how many. The last
-- of their seals stays, for the chain to begin with.
CREATE FUNCTION rota.prune_audit(older_than timestamptz, lim integer) RETURNS integer
LANGUAGE plpgsql
SET search_path = rota, pg_temp
SET enable_seqscan = off SET jit = off
AS $$
DECLARE
    gone integer;
    last bigint;
BEGIN
    IF NOT pg_try_advisory_xact_lock(hashtextextended('rota.audit_seals', 0)) THEN
        RETURN 0;
    END IF;
    SELECT max(s.number) INTO last
      FROM (SELECT b.number, b.entries, sum(b.entries) OVER (ORDER BY b.number) AS total,
                   bool_and(least(b.last_at, b.sealed_at) < older_than) OVER (ORDER BY b.number) AS is_old
              FROM (SELECT * FROM rota.audit_seals WHERE pruned_at IS NULL ORDER BY number LIMIT 1000) AS b) AS s
     WHERE s.is_old AND (s.total <= lim OR s.total = s.entries);
    IF last IS NULL THEN
        RETURN 0;
    END IF;
    UPDATE rota.audit_seals SET pruned_at = clock_timestamp() WHERE number <= last AND pruned_at IS NULL;
    DELETE FROM rota.audit WHERE seal <= last;
    GET DIAGNOSTICS gone = ROW_COUNT;
    DELETE FROM rota.audit_seals WHERE number < last;
    RETURN gone;
END
$$;
