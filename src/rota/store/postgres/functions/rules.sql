-- Rules of limits and tenants: written by version.

-- One limit. The bucket keeps what was taken from it, but is never further from full than its size says.
CREATE FUNCTION rota.put_limit(given json, now timestamptz) RETURNS bigint
LANGUAGE plpgsql
SET search_path = rota, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    made rota.limits := json_populate_record(NULL::rota.limits, given);
    -- the longest that it may take to be full again
    most_ns numeric := (extract(epoch FROM now) * 1000000000 + coalesce(made.every_ns::numeric * made.burst, 0));
    is_strict boolean := given->>'strict';
    written bigint;
BEGIN
    made.declared := given->>'declared';
    made.chosen := given->>'chosen';
    IF made.version = 0 THEN
        INSERT INTO rota.limits (name, scope, subject, running, every_ns, burst, strict, declared, chosen, updated_at)
        VALUES (made.name, made.scope, made.subject, made.running, made.every_ns, made.burst, is_strict,
                made.declared, made.chosen, now)
        ON CONFLICT DO NOTHING RETURNING version INTO written;
    ELSE
        UPDATE rota.limits SET
            scope = made.scope, subject = made.subject, running = made.running, every_ns = made.every_ns,
            burst = made.burst, strict = is_strict, declared = made.declared, chosen = made.chosen,
            full_ns = least(full_ns, most_ns)::bigint, version = version + 1, updated_at = now
         WHERE name = made.name AND version = made.version RETURNING version INTO written;
    END IF;
    IF written IS NOT NULL AND made.scope = 'family' AND made.every_ns IS NOT NULL THEN
        UPDATE rota.buckets SET full_ns = most_ns::bigint
         WHERE full_ns > most_ns AND starts_with(concurrency_key, made.subject)
           AND NOT EXISTS (SELECT FROM rota.limits AS longer  -- which governs it
                            WHERE longer.scope = 'family' AND coalesce(longer.running, longer.every_ns) IS NOT NULL
                              AND length(longer.subject) > length(made.subject)
                              AND starts_with(concurrency_key, longer.subject));
    END IF;
    RETURN written;
END
$$;

-- One tenant.
CREATE FUNCTION rota.put_tenant(given json, now timestamptz) RETURNS bigint
LANGUAGE plpgsql
SET search_path = rota, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    made rota.tenants := json_populate_record(NULL::rota.tenants, given);
    written bigint;
BEGIN
    IF made.version = 0 THEN
        made.version := 1;
        made.updated_at := now;
        INSERT INTO rota.tenants VALUES (made.*) ON CONFLICT DO NOTHING RETURNING version INTO written;
    ELSE
        UPDATE rota.tenants SET
            weight = made.weight, max_priority = made.max_priority, waiting = made.waiting,
            schedules = made.schedules, bytes_per_day = made.bytes_per_day, budget = made.budget,
            period = made.period, budget_alert = made.budget_alert, retention_days = made.retention_days,
            version = version + 1, updated_at = now
         WHERE name = made.name AND version = made.version RETURNING version INTO written;
    END IF;
    RETURN written;
END
$$;

-- The version after a rule that says nothing: 0 if its row had the given one and is gone, else NULL.
CREATE FUNCTION rota.drop_rule(is_limit boolean, rule text, given bigint) RETURNS bigint
LANGUAGE plpgsql
SET search_path = rota, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    found bigint;
BEGIN
    IF is_limit THEN
        DELETE FROM rota.limits WHERE name = rule AND version = given;
        SELECT version INTO found FROM rota.limits WHERE name = rule;
    ELSE
        DELETE FROM rota.tenants WHERE name = rule AND version = given;
        SELECT version INTO found FROM rota.tenants WHERE name = rule;
    END IF;
    RETURN CASE WHEN found IS NULL THEN 0 END;
END
$$;

-- What claims must know about the rules, and what runs already counts under them. The caller keeps claims away.
CREATE FUNCTION rota.enforce_rules() RETURNS void
LANGUAGE plpgsql
SET search_path = rota, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    kinds CONSTANT integer := (SELECT coalesce(bit_or(CASE l.scope
            WHEN 'queue' THEN 1 WHEN 'task' THEN 2 WHEN 'tenant' THEN 4 WHEN 'key' THEN 8 WHEN 'family' THEN 16 ELSE 0 END
            | CASE WHEN l.strict THEN 128 ELSE 0 END), 0)
          FROM rota.limits AS l)
        | (SELECT coalesce(bit_or(CASE WHEN t.weight <> 1 THEN 32 ELSE 0 END | CASE WHEN t.budget IS NULL THEN 0 ELSE 64 END), 0)
             FROM rota.tenants AS t);
    lengths CONSTANT integer[] := ARRAY(SELECT DISTINCT length(l.subject) FROM rota.limits AS l WHERE l.scope = 'family');
BEGIN
    UPDATE rota.running AS r SET ruled = coalesce(r.ruled, 0) | u.bits
      FROM (SELECT x.id, ((CASE WHEN EXISTS (SELECT FROM rota.limits AS l WHERE l.name = 'queue:' || x.queue) THEN 1 ELSE 0 END)
                 | (CASE WHEN EXISTS (SELECT FROM rota.limits AS l WHERE l.name = 'task:' || x.task) THEN 2 ELSE 0 END)
                 | (CASE WHEN EXISTS (SELECT FROM rota.limits AS l WHERE l.name = 'tenant:' || x.tenant)
                           OR EXISTS (SELECT FROM rota.tenants AS t WHERE t.name = x.tenant AND t.budget IS NOT NULL) THEN 4 ELSE 0 END)
                 | (CASE WHEN x.concurrency_key IS NOT NULL AND EXISTS (
                           SELECT FROM rota.limits AS l WHERE l.name = ANY (
                               ('key:' || x.concurrency_key) || ARRAY(
                               SELECT 'key:' || left(x.concurrency_key, n) || '*' FROM unnest(lengths) AS n
                                WHERE n <= length(x.concurrency_key)))) THEN 8 ELSE 0 END))::smallint AS bits
              FROM rota.running AS x) AS u
     WHERE r.id = u.id AND coalesce(r.ruled, 0) | u.bits <> coalesce(r.ruled, 0);
    UPDATE rota.segments SET version = version + 1, fair = fair OR kinds <> 0, rules = kinds::smallint
     WHERE version = (SELECT max(s.version) FROM rota.segments AS s);
END
$$;

-- Keep claims away until the transaction ends; those under way are waited for, up to some seconds. They wait in turn
-- for a quarter of a second at most, since a session may hold them up whose client has stopped reading.
CREATE FUNCTION rota.stop_claims() RETURNS void
LANGUAGE plpgsql
SET search_path = rota, pg_temp
SET lock_timeout = '250ms'
AS $$
BEGIN
    FOR try IN 1..12 LOOP
        BEGIN
            PERFORM FROM rota.segments ORDER BY version DESC LIMIT 1 FOR UPDATE;  -- which no claim waits for
            PERFORM pg_advisory_xact_lock({rules lock});
            RETURN;
        EXCEPTION WHEN lock_not_available THEN
            PERFORM pg_sleep(0.1);
        END;
    END LOOP;
    RAISE lock_not_available USING
        MESSAGE = 'rules were not changed: a claim of another session has been under way for seconds',
        HINT = 'Try again; find that session in pg_stat_activity, and end it if its program hangs.';
END
$$;

-- Each rule is {kind, name, version} and its columns; one that is to be deleted has the kind only.
-- In the order of their names, so that two programs that declare the same never wait for each other. When it
-- returns, every claim that follows obeys them.
CREATE FUNCTION rota.put_rules(rules json, now timestamptz) RETURNS TABLE (ord bigint, version bigint)
LANGUAGE plpgsql
SET search_path = rota, pg_temp
AS $$
DECLARE
    given json;
BEGIN
    PERFORM rota.stop_claims();
    FOR ord, given IN
        SELECT r.ord, r.value FROM json_array_elements(rules) WITH ORDINALITY AS r (value, ord)
         ORDER BY r.value->>'kind', r.value->>'name'
    LOOP
        version := CASE
            WHEN (given->>'deleted')::boolean
                THEN rota.drop_rule(given->>'kind' = 'limit', given->>'name', (given->>'version')::bigint)
            WHEN given->>'kind' = 'limit' THEN rota.put_limit(given, now)
            ELSE rota.put_tenant(given, now)
        END;
        RETURN NEXT;
    END LOOP;
    PERFORM rota.enforce_rules();
END
$$;
