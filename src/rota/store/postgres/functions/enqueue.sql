-- For SQL users: the job exists if and only if the transaction commits. The bounds come from
-- core/jobs/options.py.

CREATE FUNCTION rota.check_name(what text, value text) RETURNS void
LANGUAGE plpgsql IMMUTABLE
SET search_path = rota, pg_temp
AS $$
BEGIN
    IF length(value) NOT BETWEEN 1 AND {longest name} OR value ~ '[[:cntrl:]]' THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('%s is %L, but must have 1 to {longest name} printable characters', what, left(value, 40));
    END IF;
END
$$;

-- A key with its placeholders filled from the arguments, as core/jobs/key_templates.py does it.
CREATE FUNCTION rota.fill_key(template text, payload json) RETURNS text
LANGUAGE plpgsql IMMUTABLE
SET search_path = rota, pg_temp
AS $$
DECLARE
    filled text := '';
    rest text := template;
    found text[];
    value json;
BEGIN
    LOOP
        found := regexp_match(rest, '^(.*?)(\{\{([[:alpha:]_][[:alnum:]_]*(?:\.[[:alnum:]_]+)*)\}\}|\{([[:alpha:]_][[:alnum:]_]*(?:\.[[:alnum:]_]+)*)\})(.*)$');
        IF found IS NULL THEN
            RETURN filled || rest;
        END IF;
        IF found[3] IS NOT NULL THEN
            filled := filled || found[1] || '{' || found[3] || '}';
        ELSE
            value := payload #> string_to_array(found[4], '.');
            IF value IS NULL OR json_typeof(value) IN ('object', 'array') THEN
                RAISE invalid_parameter_value USING
                    MESSAGE = format('the concurrency_key of the task is %L, but the payload has no text or number %s',
                                     template, found[4]);
            END IF;
            filled := filled || found[1] || (CASE json_typeof(value) WHEN 'string' THEN value #>> '{}' ELSE value::text END);
        END IF;
        rest := found[5];
    END LOOP;
END
$$;

-- Refuses units that a rate never has at once: the job would wait for ever.
CREATE FUNCTION rota.check_units(units integer, queue text, task text, tenant text, concurrency_key text) RETURNS void
LANGUAGE plpgsql
SET search_path = rota, pg_temp
AS $$
DECLARE
    small record;
BEGIN
    IF NOT has_table_privilege('rota.limits', 'SELECT') THEN
        RETURN;
    END IF;
    SELECT l.name, l.burst INTO small FROM rota.limits AS l
     WHERE l.burst < units AND (
           l.name IN ('queue:' || queue, 'task:' || task, 'tenant:' || tenant)
        OR l.name = (SELECT k.name FROM rota.limits AS k
                      WHERE k.scope IN ('key', 'family')
                        AND (k.name = 'key:' || concurrency_key
                             OR (k.scope = 'family' AND starts_with(concurrency_key, k.subject)))
                      ORDER BY k.scope = 'key' DESC, length(k.subject) DESC LIMIT 1))
     LIMIT 1;
    IF FOUND THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('units is %s, but the burst of limit %s is %s, so the job would wait for ever: '
                             'raise the burst, or take at most %s units', units, small.name, small.burst, small.burst);
    END IF;
END
$$;

CREATE FUNCTION rota.enqueue(
    task text, payload json DEFAULT '{}', queue text DEFAULT NULL, priority integer DEFAULT NULL,
    tenant text DEFAULT NULL, run_at timestamptz DEFAULT NULL, key text DEFAULT NULL,
    on_conflict text DEFAULT NULL, max_attempts integer DEFAULT NULL, timeout double precision DEFAULT NULL,
    auto_remove boolean DEFAULT NULL, tags text[] DEFAULT NULL, delay interval DEFAULT NULL,
    key_for interval DEFAULT NULL, expires interval DEFAULT NULL, keep interval DEFAULT NULL,
    concurrency_key text DEFAULT NULL, units integer DEFAULT NULL, price double precision DEFAULT NULL)
RETURNS uuid
LANGUAGE plpgsql
SET search_path = rota, pg_temp
AS $$
DECLARE
    now CONSTANT timestamptz := clock_timestamp();
    made CONSTANT uuid := rota.id_at(now);
    wrong text;
    stored record;
    own json;
BEGIN
    -- What the task's workers have published; nothing for a role that may not read it.
    IF has_table_privilege('rota.documents', 'SELECT') THEN
        SELECT d.body->'options' INTO own FROM rota.documents AS d
         WHERE d.kind = 'task' AND d.key = enqueue.task;
    END IF;
    queue := coalesce(queue, own->>'queue', 'default');
    priority := coalesce(priority, (own->>'priority')::integer, 0);
    tenant := coalesce(tenant, own->>'tenant', 'default');
    on_conflict := coalesce(on_conflict, own->>'on_conflict', 'return');
    max_attempts := coalesce(max_attempts, (own->>'max_attempts')::integer, 3);
    expires := coalesce(expires, make_interval(secs => (own->>'expires')::double precision));
    keep := coalesce(keep, make_interval(secs => (own->>'keep')::double precision));
    concurrency_key := coalesce(concurrency_key, rota.fill_key(own->>'concurrency_key', payload));
    units := coalesce(units, (own->>'units')::integer);
    price := coalesce(price, (own->>'price')::double precision);
    auto_remove := coalesce(auto_remove, (own->>'auto_remove')::boolean, false);
    tags := coalesce(tags, CASE WHEN json_typeof(own->'tags') = 'array'
                                THEN ARRAY(SELECT json_array_elements_text(own->'tags')) END, '{}');
    wrong := CASE
        WHEN task IS NULL OR task = '' THEN 'a job needs the name of its task, but task is empty'
        WHEN payload IS NULL THEN 'the payload of a job is a JSON object, not NULL: leave it out for {}'
        WHEN json_typeof(payload) <> 'object' THEN
            format('the payload of a job is a JSON object such as {"order_id": 42}, not %s', json_typeof(payload))
        WHEN on_conflict NOT IN ({conflicts}) THEN
            format('on_conflict is %L, but must be return, raise or replace', on_conflict)
        WHEN max_attempts NOT BETWEEN 1 AND {most attempts} THEN
            format('max_attempts is %s, but must be from 1 to {most attempts}', max_attempts)
        WHEN abs(priority::bigint) > {largest priority} THEN
            format('priority is %s, but must be from -{largest priority} to {largest priority}', priority)
        WHEN timeout NOT BETWEEN {shortest timeout} AND {longest timeout} THEN
            format('timeout is %s, but must be from {shortest timeout} to {longest timeout} seconds', timeout)
        WHEN run_at IS NOT NULL AND delay IS NOT NULL THEN 'run_at and delay were both given: keep one'
        WHEN key_for IS NOT NULL AND key IS NULL THEN 'key_for says how long a key is kept, but key is NULL'
        WHEN extract(epoch FROM key_for) NOT BETWEEN 0 AND {longest key} THEN
            format('key_for is %s, but must be from 0 to 100 years', key_for)
        WHEN extract(epoch FROM expires) NOT BETWEEN {shortest timeout} AND {longest key} THEN
            format('expires is %s, but must be longer than 0 and at most 100 years', expires)
        WHEN extract(epoch FROM keep) NOT BETWEEN 0 AND {longest key} THEN
            format('keep is %s, but must be from 0 to 100 years', keep)
        WHEN units NOT BETWEEN 1 AND {most units} THEN
            format('units is %s, but must be from 1 to {most units}', units)
        WHEN NOT price BETWEEN 0 AND {most cents} THEN
            format('price is %s, but must be a number of cents from 0 to {most cents}', price)
        WHEN NOT isfinite(run_at) THEN format('run_at is %s, but must be an instant', run_at)
        WHEN cardinality(tags) > {most tags} THEN
            format('a job may have at most {most tags} tags, %s were given', cardinality(tags))
    END;
    IF wrong IS NOT NULL THEN
        RAISE invalid_parameter_value USING MESSAGE = wrong;
    END IF;
    PERFORM rota.check_name(what, value) FROM (
        VALUES ('task', task), ('queue', queue), ('tenant', tenant), ('key', key),
               ('concurrency_key', concurrency_key)) AS n(what, value);
    PERFORM rota.check_name('tag', coalesce(tag, '')) FROM unnest(tags) AS tag;
    IF units > 1 THEN
        PERFORM rota.check_units(units, queue, task, tenant, concurrency_key);
    END IF;
    SELECT * INTO stored FROM rota.insert_jobs(json_build_array(json_build_object(
        'id', made, 'task', task, 'payload_json', payload::text, 'queue', queue, 'tenant', tenant,
        'priority', priority, 'run_at', coalesce(run_at, now + delay), 'max_attempts', max_attempts,
        'timeout', timeout, 'key', key, 'key_for', extract(epoch FROM key_for), 'on_conflict', on_conflict, 'auto_remove', auto_remove,
        'tags', tags, 'origin', 'sql', 'expires_at', coalesce(run_at, now + delay, now) + expires,
        'keep', extract(epoch FROM keep), 'concurrency_key', concurrency_key, 'units', units, 'price', price)), now, false, true);
    IF stored.outcome = 'refused' THEN
        RAISE unique_violation USING
            MESSAGE = format('job %s already holds the key %L of tenant %L', stored.id, key, coalesce(tenant, 'default'));
    END IF;
    RETURN coalesce(stored.id, made);
END
$$;

COMMENT ON FUNCTION rota.enqueue(
    text, json, text, integer, text, timestamptz, text, text, integer, double precision, boolean, text[], interval, interval,
    interval, interval, text, integer, double precision) IS
    'Store a job and return its id. It exists if and only if the transaction commits.';
