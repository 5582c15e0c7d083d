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
         WHERE full_ns > most_ns AND starts_with(concurrency_key, made.subject);
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

-- Each rule is {kind, name, version} and its columns; one that is to be deleted has the kind only.
-- In the order of their names, so that two programs that declare the same never wait for each other.
CREATE FUNCTION rota.put_rules(rules json, now timestamptz) RETURNS TABLE (ord bigint, version bigint)
LANGUAGE plpgsql
SET search_path = rota, pg_temp
AS $$
DECLARE
    given json;
BEGIN
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
END
$$;
