-- A worker's path: settle what ended, claim what is due, keep leases alive, take over lost ones.

-- Adds to the tally, in one order everywhere so that two transactions never wait for each other.
CREATE FUNCTION rota.count_ended(queues text[], tasks text[], states text[], minutes timestamptz[], step integer)
RETURNS void
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
    INSERT INTO rota.tally AS t (minute, queue, task, state, slot, n)
    SELECT date_trunc('minute', m), q, k, s, pg_backend_pid() % 64, step * count(*)
      FROM unnest(queues, tasks, states, minutes) AS e(q, k, s, m)
     GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 2, 3, 4, 5
    ON CONFLICT (minute, queue, task, state, slot) DO UPDATE SET n = t.n + excluded.n;
END
$$;

-- What is kept of a job beside its own row goes with it.
CREATE FUNCTION rota.forget(ids uuid[]) RETURNS void
LANGUAGE sql AS $$
    DELETE FROM rota.attempts WHERE job = ANY (ids);
    DELETE FROM rota.payloads WHERE job = ANY (ids);
$$;

-- Tells those who wait for one of these jobs.
CREATE FUNCTION rota.tell_ended(ids uuid[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM rota.waiters) THEN
        PERFORM pg_notify('rota_done', w.id::text) FROM rota.waiters AS w WHERE w.id = ANY (ids);
        DELETE FROM rota.waiters AS w WHERE w.id = ANY (ids);
    END IF;
END
$$;

-- What most jobs come to: a success without logs. One statement; the fence is the same as in
-- rota.settle. The attempt is recorded only if there were others before it. ages: microseconds since the
-- task's code began, in the order of ids (ascending, so that two settlers never wait for each other);
-- outputs: JSON texts or nulls, NULL if none has any.
CREATE FUNCTION rota.succeed(ids uuid[], tokens bigint[], ages bigint[], outputs json, now timestamptz)
RETURNS uuid[]  -- the refused ones
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    texts text[];
    held uuid[];
    holders uuid[];
    tenants text[];
    keys text[];
BEGIN
    IF outputs IS NOT NULL THEN
        texts := ARRAY(SELECT json_array_elements_text(outputs));
    END IF;
    WITH change AS MATERIALIZED (
        SELECT * FROM unnest(ids, tokens, ages, texts) AS c(id, token, age, output)
    ), taken AS (
        -- An array of ids can only be looked up in the index, in their order, whatever the statistics say;
        -- and a row that a beat renews meanwhile is met again under its new version.
        DELETE FROM rota.running WHERE id = ANY (ids)
           AND ((id, token) IN (SELECT c.id, c.token FROM change AS c)) IS TRUE
        RETURNING *
    ), finished AS (
        INSERT INTO rota.done (
            id, created_at, run_at, token, rank, attempt, max_attempts, auto_remove, tenant, queue, task, origin,
            payload, cost_cents, timeout, started_at, scheduled_for, schedule, key, tags, parent, backoff, error,
            progress, state, finished_at, worker, output)
        SELECT t.id, created_at, run_at, t.token, rank, attempt, max_attempts, auto_remove, tenant, queue, task, origin,
               payload, cost_cents, timeout, coalesce(now - age * interval '1 microsecond', started_at),
               scheduled_for, schedule, key, tags, parent, backoff, NULL, progress, 'succeeded', now, worker,
               output::json
          FROM taken AS t JOIN change AS c ON c.id = t.id AND c.token = t.token
    ), recorded AS (
        INSERT INTO rota.attempts (job, token, attempt, outcome, worker, started_at, finished_at)
        SELECT t.id, t.token, attempt, 'succeeded', worker,
               coalesce(now - age * interval '1 microsecond', started_at), now
          FROM taken AS t JOIN change AS c ON c.id = t.id AND c.token = t.token WHERE attempt > 1
        ON CONFLICT DO NOTHING
    ), counted AS (
        INSERT INTO rota.tally AS t (minute, queue, task, state, slot, n)
        SELECT date_trunc('minute', now), queue, task, 'succeeded', pg_backend_pid() % 64, count(*)
          FROM taken GROUP BY queue, task ORDER BY queue, task
        ON CONFLICT (minute, queue, task, state, slot) DO UPDATE SET n = t.n + excluded.n
    )
    SELECT array_agg(id), array_agg(id) FILTER (WHERE key IS NOT NULL),
           array_agg(tenant) FILTER (WHERE key IS NOT NULL), array_agg(key) FILTER (WHERE key IS NOT NULL)
      INTO held, holders, tenants, keys FROM taken;
    PERFORM rota.tell_ended(held);
    IF holders IS NOT NULL THEN
        PERFORM rota.free_keys(tenants, keys, holders);
    END IF;
    IF cardinality(ids) > coalesce(cardinality(held), 0) THEN
        RETURN ARRAY(SELECT i FROM unnest(ids) AS i WHERE NOT i = ANY (coalesce(held, '{}')));
    END IF;
    RETURN NULL;
END
$$;

-- Only a change whose (id, token) is still running is carried out; the others are refused.
-- With an outcome, the attempt is recorded: tried, by, ended_at, own_error, logs_json and spent are of the attempt;
-- blamed: the job's error is the attempt's as well. woken: queues that got a job back which is due.
CREATE FUNCTION rota.settle(changes json, now timestamptz, OUT refused uuid[], OUT woken text[])
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    wanted integer;
    held uuid[];
    ended uuid[];
    queues text[];
    tasks text[];
    states text[];
    tenants text[];
    keys text[];
    removed uuid[];
    follow json;
    lines json;
BEGIN
    WITH change AS MATERIALIZED (
        SELECT * FROM json_to_recordset(changes) AS c(
            id uuid, token bigint, state text, attempt integer, run_at timestamptz, output_json text, error_json text,
            started_at timestamptz, cost_cents double precision, progress_json text, remove boolean, outcome text,
            tried integer, by text, ended_at timestamptz, blamed boolean, own_error text, logs_json text,
            spent double precision, "then" json, audit json)
    ), taken AS (
        -- An array of ids can only be looked up in the index, in their order, whatever the statistics say;
        -- and a row that a beat renews meanwhile is met again under its new version.
        DELETE FROM rota.running WHERE id = ANY (ARRAY(SELECT c.id FROM change AS c))
           AND ((id, token) IN (SELECT c.id, c.token FROM change AS c)) IS TRUE
        RETURNING *
    ), held AS MATERIALIZED (
        SELECT r.*, c.state, c.attempt AS counted, coalesce(c.run_at, now) AS next_at, c.output_json::json AS output,
               c.error_json::json AS fault, coalesce(c.started_at, r.started_at) AS began_at,
               nullif(coalesce(r.cost_cents, 0) + coalesce(c.cost_cents, 0), 0) AS cost,
               coalesce(c.progress_json::json, r.progress) AS reached, coalesce(c.remove, false) AS remove,
               c.outcome, c.tried, c.by, c.ended_at, c.blamed, c.own_error, c.logs_json, c.spent,
               c."then", c.audit
          FROM taken AS r JOIN change AS c ON c.id = r.id AND c.token = r.token
    ), finished AS (
        INSERT INTO rota.done (
            id, created_at, run_at, token, rank, attempt, max_attempts, auto_remove, tenant, queue, task, origin,
            payload, cost_cents, timeout, started_at, scheduled_for, schedule, key, tags, parent, backoff, error,
            progress, state, finished_at, worker, output)
        SELECT id, created_at, run_at, token, rank, counted, max_attempts, auto_remove, tenant, queue, task, origin,
               payload, cost, timeout, began_at, scheduled_for, schedule, key, tags, parent, backoff, fault,
               reached, state, now, worker, output
          FROM held WHERE state <> 'queued' AND NOT remove
    ), returned AS (
        INSERT INTO rota.queued (
            id, created_at, run_at, token, rank, attempt, max_attempts, auto_remove, tenant, queue, task, origin,
            payload, cost_cents, timeout, scheduled_for, schedule, key, tags, parent, backoff, error, progress,
            cancel_requested, due)
        SELECT id, created_at, next_at, token, rank, counted, max_attempts, auto_remove, tenant, queue, task, origin,
               payload, cost, timeout, scheduled_for, schedule, key, tags, parent, backoff, fault, reached,
               cancel_requested, next_at <= now
          FROM held WHERE state = 'queued'
    ), recorded AS (
        INSERT INTO rota.attempts (
            job, token, attempt, outcome, worker, started_at, finished_at, error, logs, cost_cents)
        SELECT id, token, tried, outcome, by, began_at, ended_at,
               CASE WHEN blamed THEN fault ELSE own_error::json END, logs_json::json, spent
          FROM held WHERE outcome IS NOT NULL AND NOT remove
        ON CONFLICT DO NOTHING
    )
    SELECT (SELECT count(*) FROM change), array_agg(id),
           array_agg(id) FILTER (WHERE state <> 'queued'),
           array_agg(queue) FILTER (WHERE state <> 'queued'),
           array_agg(task) FILTER (WHERE state <> 'queued'),
           array_agg(CASE WHEN remove THEN 'removed' ELSE state END) FILTER (WHERE state <> 'queued'),
           array_agg(tenant) FILTER (WHERE state <> 'queued'),
           array_agg(key) FILTER (WHERE state <> 'queued'),
           array_agg(id) FILTER (WHERE remove),
           array_agg(DISTINCT queue) FILTER (WHERE state = 'queued' AND next_at <= now),
           (SELECT json_agg(f) FROM held AS h, LATERAL json_array_elements(h."then") AS f WHERE h."then" IS NOT NULL),
           (SELECT json_agg(l) FROM held AS h, LATERAL json_array_elements(h.audit) AS l WHERE h.audit IS NOT NULL)
      INTO wanted, held, ended, queues, tasks, states, tenants, keys, removed, woken, follow, lines
      FROM held;
    IF ended IS NOT NULL THEN
        PERFORM rota.count_ended(queues, tasks, states, array_fill(now, ARRAY[cardinality(ended)]), 1);
        PERFORM rota.tell_ended(ended);
        IF array_remove(keys, NULL) <> '{}' THEN
            PERFORM rota.free_keys(tenants, keys, ended);
        END IF;
    END IF;
    IF removed IS NOT NULL THEN
        PERFORM rota.forget(removed);
    END IF;
    IF follow IS NOT NULL THEN
        PERFORM FROM rota.insert_jobs(follow, now, false, false);
    END IF;
    IF lines IS NOT NULL THEN
        PERFORM rota.append_audit(lines);
    END IF;
    IF wanted > coalesce(cardinality(held), 0) THEN
        refused := ARRAY(SELECT c.id FROM json_to_recordset(changes) AS c(id uuid)
                          WHERE NOT c.id = ANY (coalesce(held, '{}')));
    END IF;
END
$$;

-- Jobs whose time has come join the due ones; when the next will. Nothing to do costs one probe.
CREATE FUNCTION rota.promote(now timestamptz) RETURNS timestamptz
LANGUAGE plpgsql AS $$
DECLARE
    soonest timestamptz;
BEGIN
    SELECT run_at INTO soonest FROM rota.queued WHERE NOT due ORDER BY run_at LIMIT 1;
    IF soonest <= now THEN
        UPDATE rota.queued SET due = true WHERE ctid = ANY (ARRAY(
            SELECT ctid FROM rota.queued WHERE NOT due AND run_at <= now ORDER BY run_at LIMIT 1000
               FOR UPDATE SKIP LOCKED));
        SELECT run_at INTO soonest FROM rota.queued WHERE NOT due ORDER BY run_at LIMIT 1;
    END IF;
    RETURN soonest;
END
$$;

-- The queues to claim from. Without a list: those with due jobs, one index probe each.
CREATE FUNCTION rota.lanes(queues text[], exclude text[]) RETURNS text[]
LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF queues IS NOT NULL THEN
        RETURN ARRAY(SELECT DISTINCT q FROM unnest(queues) AS q WHERE NOT q = ANY (exclude));
    END IF;
    RETURN ARRAY(
        WITH RECURSIVE lane(queue) AS (
            (SELECT queue FROM rota.queued WHERE due ORDER BY queue LIMIT 1)
            UNION ALL
            SELECT (SELECT q.queue FROM rota.queued AS q WHERE q.due AND q.queue > lane.queue
                     ORDER BY q.queue LIMIT 1)
              FROM lane WHERE lane.queue IS NOT NULL)
        SELECT queue FROM lane WHERE queue IS NOT NULL AND NOT queue = ANY (exclude));
END
$$;

-- Settle, then claim at most lim jobs. The first row answers for the turn, each other one is a job.
-- ended, tokens, ages, outputs: see rota.succeed; changes: all other ends, see rota.settle.
-- queues, tasks, exclude_tenants: NULL for any, any, none.
-- since: where the caller's last claim ended in each queue, as [{queue, rank, run_at, id}]. A claim that
-- starts there does not wade through the entries of jobs long gone at the front of the index. More
-- urgent jobs are still seen; and if it does not find enough, the claim looks from the front as well.
CREATE FUNCTION rota.turn(
    ended uuid[], tokens bigint[], ages bigint[], outputs json, changes json, worker text, lim integer,
    lease_until timestamptz, queues text[], exclude text[], tasks text[], exclude_tenants text[], since json,
    now timestamptz)
RETURNS TABLE (
    refused uuid[], woken text[], next_due_at timestamptz, rank integer, run_at text, id uuid,
    created_at text, token bigint, attempt integer, max_attempts integer, auto_remove boolean, tenant text,
    queue text, task text, origin text, payload json, cost_cents double precision, timeout double precision,
    scheduled_for timestamptz, schedule text, key text, tags text[], parent uuid, backoff json, error json,
    progress json, cancel_requested boolean)
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_mergejoin = off SET enable_nestloop = off
SET enable_sort = off SET jit = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
    first CONSTANT integer := -2147483648;
    last_id CONSTANT uuid := 'ffffffff-ffff-ffff-ffff-ffffffffffff';
    lane text[];  -- queues that may still hold a job to claim, the most urgent first
    head integer[];  -- the best rank of each
    -- the place in each up to which it has been looked through: (rank, run_at, id)
    seen_rank integer[];
    seen_at timestamptz[];
    seen_id uuid[];
    sharing integer;  -- how many lanes share the best rank
    top bigint;  -- claim ranks before this one
    quota integer;
    places tid[];
    givers bigint[];
    wanted integer := lim;
    from_front boolean := false;
BEGIN
    IF changes IS NOT NULL THEN
        SELECT s.refused, s.woken INTO refused, woken FROM rota.settle(changes, now) AS s;
    END IF;
    IF ended IS NOT NULL THEN
        refused := refused || rota.succeed(ended, tokens, ages, outputs, now);
    END IF;
    IF wanted > 0 THEN
        next_due_at := rota.promote(now);
    END IF;
    RETURN NEXT;
    IF wanted > 0 AND since IS NOT NULL THEN
        SELECT array_agg(c.queue), array_agg(CASE WHEN u.urgent THEN first ELSE c.rank END),
               array_agg(c.run_at), array_agg(c.id)
          INTO lane, seen_rank, seen_at, seen_id
          FROM json_to_recordset(since) AS c(queue text, rank integer, run_at timestamptz, id uuid), LATERAL (
               SELECT EXISTS (SELECT FROM rota.queued AS q
                               WHERE q.due AND q.queue = c.queue AND q.rank < c.rank) AS urgent) AS u;
    END IF;
    WHILE wanted > 0 LOOP
        IF lane IS NULL THEN
            EXIT WHEN from_front;
            from_front := true;
            PERFORM rota.bring_back(queues, exclude, exclude_tenants, lim);
            lane := rota.lanes(queues, exclude);
            IF exclude_tenants IS NOT NULL THEN
                PERFORM rota.set_aside(lane, exclude_tenants, lim);
            END IF;
            seen_rank := array_fill(first, ARRAY[cardinality(lane)]);
            seen_at := array_fill('-infinity'::timestamptz, ARRAY[cardinality(lane)]);
            seen_id := array_fill(last_id, ARRAY[cardinality(lane)]);
        END IF;
        IF cardinality(lane) = 1 THEN
            sharing := 1;  -- with nobody: it may give all it has
            top := 2147483648;
        ELSE
            SELECT array_agg(l.queue ORDER BY h.rank, h.run_at), array_agg(h.rank ORDER BY h.rank, h.run_at),
                   array_agg(l.rank ORDER BY h.rank, h.run_at), array_agg(l.run_at ORDER BY h.rank, h.run_at),
                   array_agg(l.id ORDER BY h.rank, h.run_at)
              INTO lane, head, seen_rank, seen_at, seen_id
              FROM unnest(lane, seen_rank, seen_at, seen_id) AS l(queue, rank, run_at, id), LATERAL (
                   SELECT q.rank, q.run_at FROM rota.queued AS q
                    WHERE q.due AND q.queue = l.queue AND (q.rank, q.run_at, q.id) > (l.rank, l.run_at, l.id)
                    ORDER BY q.rank, q.run_at, q.id LIMIT 1) AS h;
            CONTINUE WHEN lane IS NULL;
            SELECT count(*) INTO sharing FROM unnest(head) AS r WHERE r = head[1];
            top := CASE WHEN sharing > 1 THEN head[1]::bigint + 1 ELSE coalesce(head[2], 2147483648) END;
        END IF;
        quota := ceil(wanted / sharing::double precision);
        -- from all that share at once: a thousand queues cost one statement, as one does
        SELECT array_agg(p.place), array_agg(p.ord) INTO places, givers
          FROM (SELECT f.place, l.ord
                  FROM unnest(lane[1:sharing], seen_rank[1:sharing], seen_at[1:sharing], seen_id[1:sharing])
                       WITH ORDINALITY AS l(queue, rank, run_at, id, ord), LATERAL (
                       SELECT q.ctid AS place FROM rota.queued AS q
                        WHERE q.due AND q.queue = l.queue AND q.rank < top
                          AND (q.rank, q.run_at, q.id) > (l.rank, l.run_at, l.id)
                          AND (tasks IS NULL OR q.task = ANY (tasks))
                          AND (exclude_tenants IS NULL OR NOT q.tenant = ANY (exclude_tenants))
                        ORDER BY q.rank, q.run_at, q.id LIMIT quota FOR UPDATE SKIP LOCKED) AS f
                 LIMIT wanted) AS p;
        IF places IS NOT NULL THEN
            RETURN QUERY
            WITH picked AS (
                DELETE FROM rota.queued WHERE ctid = ANY (places) RETURNING *
            )
            INSERT INTO rota.running AS r (
                id, created_at, run_at, token, rank, attempt, max_attempts, auto_remove, tenant, queue, task, origin,
                payload, cost_cents, timeout, started_at, scheduled_for, schedule, key, tags, parent, backoff, error,
                progress, worker, lease_until, cancel_requested)
            SELECT p.id, p.created_at, p.run_at, p.token + 1, p.rank, p.attempt + 1, p.max_attempts, p.auto_remove,
                   p.tenant, p.queue, p.task, p.origin, p.payload, p.cost_cents, p.timeout, now, p.scheduled_for,
                   p.schedule, p.key, p.tags, p.parent, p.backoff, p.error, p.progress, turn.worker, turn.lease_until,
                   p.cancel_requested
              FROM picked AS p
            RETURNING NULL::uuid[], NULL::text[], NULL::timestamptz, r.rank, r.run_at::text, r.id,
                      r.created_at::text, r.token, r.attempt, r.max_attempts, r.auto_remove, r.tenant::text,
                      r.queue::text, r.task::text, r.origin::text,
                      coalesce(r.payload, (SELECT p.body FROM rota.payloads AS p WHERE p.job = r.id)), r.cost_cents, r.timeout,
                      r.scheduled_for, r.schedule::text, r.key::text, r.tags::text[], r.parent, r.backoff, r.error,
                      r.progress, r.cancel_requested;
            wanted := wanted - cardinality(places);
        END IF;
        IF wanted > 0 AND cardinality(lane) = 1 THEN
            lane := NULL;
        ELSIF wanted > 0 THEN
            -- a lane that gave less than its share has nothing more to give up to here
            SELECT array_agg(CASE WHEN kept THEN rank ELSE (top - 1)::integer END ORDER BY ord),
                   array_agg(CASE WHEN kept THEN run_at ELSE 'infinity' END ORDER BY ord),
                   array_agg(CASE WHEN kept THEN id ELSE last_id END ORDER BY ord)
              INTO seen_rank, seen_at, seen_id
              FROM (SELECT l.*, l.ord > sharing OR coalesce(g.n, 0) >= quota AS kept
                      FROM unnest(seen_rank, seen_at, seen_id) WITH ORDINALITY AS l(rank, run_at, id, ord)
                      LEFT JOIN (SELECT o, count(*) AS n FROM unnest(givers) AS o GROUP BY o) AS g ON g.o = l.ord)
                   AS s;
        END IF;
    END LOOP;
END
$$;

-- One heartbeat of a process: renew its leases, write progress, record the worker.
CREATE FUNCTION rota.beat(
    worker text, document json, leases json, notes json, lease_until timestamptz, now timestamptz,
    OUT lost uuid[], OUT cancel uuid[])
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_mergejoin = off SET enable_hashjoin = off
SET jit = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
    kept uuid[];
    note record;
BEGIN
    IF leases IS NOT NULL THEN
        WITH lease AS MATERIALIZED (
            SELECT * FROM json_to_recordset(leases) AS l(id uuid, token bigint)
        ), renewed AS (
            UPDATE rota.running SET lease_until = beat.lease_until
             WHERE id = ANY (ARRAY(SELECT l.id FROM lease AS l))
               AND ((id, token) IN (SELECT l.id, l.token FROM lease AS l)) IS TRUE
            RETURNING id
        )
        SELECT array_agg(id) INTO kept FROM renewed;
        lost := ARRAY(SELECT l.id FROM json_to_recordset(leases) AS l(id uuid)
                       WHERE NOT l.id = ANY (coalesce(kept, '{}')));
    END IF;
    FOR note IN SELECT * FROM json_to_recordset(notes) AS n(id uuid, token bigint, progress_json text) ORDER BY id LOOP
        UPDATE rota.running SET progress = note.progress_json::json WHERE id = note.id AND token = note.token;
    END LOOP;
    INSERT INTO rota.documents AS d (kind, key, version, updated_at, body)
    VALUES ('worker', beat.worker, 1, now, document)
    ON CONFLICT (kind, key) DO UPDATE
       SET version = d.version + 1, updated_at = excluded.updated_at, body = excluded.body;
    cancel := ARRAY(SELECT r.id FROM rota.running AS r WHERE r.cancel_requested AND r.worker = beat.worker);
END
$$;

-- Take over jobs whose lease has run out. The rows returned name the worker that lost them.
CREATE FUNCTION rota.reclaim(holder text, fresh_until timestamptz, lim integer, now timestamptz)
RETURNS SETOF rota.running
LANGUAGE plpgsql
SET enable_bitmapscan = off SET enable_mergejoin = off SET enable_hashjoin = off SET jit = off
SET plan_cache_mode = force_generic_plan AS $$
BEGIN
    -- Looks through the whole table, which holds no more than workers have in hand: an index on
    -- lease_until would be paid for by every claim, this only by the one sweep in a few seconds.
    RETURN QUERY
    WITH expired AS MATERIALIZED (
        SELECT e.id, e.worker FROM rota.running AS e WHERE e.lease_until <= now ORDER BY e.lease_until LIMIT lim
           FOR UPDATE SKIP LOCKED)
    UPDATE rota.running AS r SET token = r.token + 1, worker = holder, lease_until = fresh_until
      FROM expired AS e WHERE r.id = e.id
    RETURNING r.id, r.created_at, r.run_at, r.token, r.rank, r.attempt, r.max_attempts, r.auto_remove, r.tenant,
              r.queue, r.task, r.origin,
              coalesce(r.payload, (SELECT p.body FROM rota.payloads AS p WHERE p.job = r.id)), r.cost_cents, r.timeout, r.started_at, r.scheduled_for,
              r.schedule, r.key, r.tags, r.parent, r.backoff, r.error, r.progress, e.worker, r.lease_until,
              r.cancel_requested;
END
$$;

INSERT INTO rota.migrations (version, name) VALUES (3, '0003_turn');
