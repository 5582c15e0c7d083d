-- The end of attempts. A change is carried out only if its job is running under the same token, and held
-- by the same worker: a token alone could be given out twice by a server that lost its last transactions.

-- Settle what ended. ids to outputs: plain successes, see rota.succeed; changes: all other ends, see
-- rota.finish. woken: queues that got back a job which is due. settled_at: now, for a claim that must follow.
-- freed: the lanes where a limit has a place again, for rota.claim_fairly; slots: the queues whose jobs may wait for it.
CREATE FUNCTION rota.settle(
    ids uuid[], tokens bigint[], workers text[], began bigint[], outputs json, changes json, now timestamptz,
    OUT refused uuid[], OUT woken text[], OUT settled_at timestamptz, OUT freed text[], OUT slots text[])
LANGUAGE plpgsql
SET search_path = rota, pg_temp
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_mergejoin = off SET enable_nestloop = off
SET enable_sort = off SET jit = off SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
    part record;
BEGIN
    settled_at := now;
    -- As a claim does, and before any job is locked: it may follow in this transaction, and would wait for a session
    -- that changes a rule and waits for these jobs.
    PERFORM pg_advisory_xact_lock_shared({rules lock});
    IF changes IS NOT NULL AND ids IS NOT NULL THEN
        -- All at once and in order, as a heartbeat does: else the two could wait for each other.
        PERFORM FROM rota.running AS r
          WHERE r.id = ANY (ids || ARRAY(SELECT c.id FROM json_to_recordset(changes) AS c(id uuid)))
          ORDER BY r.id FOR UPDATE;
    END IF;
    IF changes IS NOT NULL THEN
        SELECT f.refused, f.woken, f.freed, f.slots INTO refused, woken, freed, slots FROM rota.finish(changes, now) AS f;
    END IF;
    IF ids IS NOT NULL THEN
        SELECT * INTO part FROM rota.succeed(ids, tokens, workers, began, outputs, now);
        refused := refused || part.refused;
        freed := freed || part.freed;
        slots := slots || part.slots;
    END IF;
    IF slots IS NOT NULL OR freed IS NOT NULL THEN
        slots := rota.list_waiting_queues(slots);
    END IF;
END
$$;

-- The queues in which jobs may wait for what was freed. of_queues: those whose own limit has a place; the jobs of
-- one that is full stay in its line. Other limits hold jobs in lanes, of any queue: some of the queues with lanes.
CREATE FUNCTION rota.list_waiting_queues(of_queues text[]) RETURNS text[]
LANGUAGE plpgsql STABLE
SET search_path = rota, pg_temp
AS $$
DECLARE
    most CONSTANT integer := 16;
    found text[] := ARRAY(SELECT DISTINCT q FROM unnest(of_queues) AS q);
    held text;
BEGIN
    FOR n IN 1..most LOOP
        SELECT q.queue INTO held FROM rota.queued AS q
         WHERE q.due IS NULL AND q.queue > coalesce(held, '') ORDER BY q.queue LIMIT 1;
        EXIT WHEN held IS NULL;
        found := found || held;
    END LOOP;
    RETURN nullif(found, '{}');
END
$$;

-- What most jobs come to: a success without logs. One statement. The attempt is recorded only if there
-- were others before it. began: when the task's code did, in microseconds since 1970, in the order of ids
-- (ascending, so that two workers never wait for each other); outputs: JSON texts or nulls, NULL if none
-- has any.
CREATE FUNCTION rota.succeed(
    ids uuid[], tokens bigint[], workers text[], began bigint[], outputs json, now timestamptz,
    OUT refused uuid[], OUT freed text[], OUT slots text[])
LANGUAGE plpgsql
SET search_path = rota, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    texts text[];
    held uuid[];
    holders uuid[];
    tenants text[];
    keys text[];
    run_tenants text[];
    run_names text[];
    run_began timestamptz[];
BEGIN
    IF outputs IS NOT NULL THEN
        texts := ARRAY(SELECT json_array_elements_text(outputs));
    END IF;
    WITH change AS MATERIALIZED (
        SELECT * FROM unnest(ids, tokens, workers, began, texts) AS c(id, lease_token, worker, began, output)
    ), taken AS (
        -- An array of ids can only be looked up in the index, in their order, whatever the statistics say;
        -- and a row that a heartbeat renews meanwhile is met again under its new version.
        DELETE FROM rota.running WHERE id = ANY (ids)
           AND ((id, lease_token, worker) IN (SELECT c.id, c.lease_token, c.worker FROM change AS c)) IS TRUE
        RETURNING *
    ), finished AS (
        INSERT INTO rota.done (
            {carried except started_at, error},
            started_at, state, finished_at, worker, output)
        SELECT {carried of t except started_at, error},
               least(coalesce('epoch'::timestamptz + began * interval '1 microsecond', started_at), now), 'succeeded', now, t.worker, output::json
          FROM taken AS t JOIN change AS c ON c.id = t.id AND c.lease_token = t.lease_token AND c.worker = t.worker
    ), recorded AS (
        INSERT INTO rota.attempts (job, lease_token, attempt, outcome, worker, started_at, finished_at)
        SELECT t.id, t.lease_token, attempt, 'succeeded', t.worker,
               least(coalesce('epoch'::timestamptz + began * interval '1 microsecond', started_at), now), now
          FROM taken AS t JOIN change AS c ON c.id = t.id AND c.lease_token = t.lease_token AND c.worker = t.worker WHERE attempt > 1
        ON CONFLICT DO NOTHING
    ), counted AS (
        INSERT INTO rota.tally AS t (minute, queue, task, state, slot, n)
        -- slots apart from those of rota.count_ended: a turn that does both keeps one order of locks
        SELECT date_trunc('minute', now), queue, task, 'succeeded', 64 + {tally slot}, count(*)
          FROM taken GROUP BY queue, task ORDER BY queue, task
        ON CONFLICT (minute, queue, task, state, slot) DO UPDATE SET n = t.n + excluded.n
    )
    SELECT array_agg(id), array_agg(id) FILTER (WHERE key IS NOT NULL),
           array_agg(tenant) FILTER (WHERE key IS NOT NULL), array_agg(key) FILTER (WHERE key IS NOT NULL),
           array_agg(tenant) FILTER (WHERE schedule IS NOT NULL),
           array_agg(schedule) FILTER (WHERE schedule IS NOT NULL),
           array_agg('epoch'::timestamptz + began[array_position(ids, id)] * interval '1 microsecond')
               FILTER (WHERE schedule IS NOT NULL),
           {freed lanes}, array_agg(queue) FILTER (WHERE ruled & 1 <> 0)
      INTO held, holders, tenants, keys, run_tenants, run_names, run_began, freed, slots FROM taken;
    IF run_names IS NOT NULL THEN
        PERFORM rota.count_runs(
            run_tenants, run_names, array_fill('succeeded'::text, ARRAY[cardinality(run_names)]), run_began,
            array_fill(now, ARRAY[cardinality(run_names)]), 64, 1);
    END IF;
    PERFORM rota.notify_ended(held);
    IF holders IS NOT NULL THEN
        PERFORM rota.end_keys(tenants, keys, holders, array_fill(true, ARRAY[cardinality(holders)]), now);
    END IF;
    IF cardinality(ids) > coalesce(cardinality(held), 0) THEN
        refused := ARRAY(SELECT i FROM unnest(ids) AS i WHERE NOT i = ANY (coalesce(held, '{}')));
    END IF;
END
$$;

-- All other ends. With an outcome, the attempt is recorded: tried, by, ended_at, own_error, logs_json and
-- spent are of the attempt; blamed: the job's error is the attempt's as well.
CREATE FUNCTION rota.finish(
    changes json, now timestamptz, OUT refused uuid[], OUT woken text[], OUT freed text[], OUT slots text[])
LANGUAGE plpgsql
SET search_path = rota, pg_temp
AS $$
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
    run_tenants text[];
    run_names text[];
    run_states text[];
    run_began timestamptz[];
    payers text[];
    amounts double precision[];
    unbegun json;
    follow json;
    lines json;
BEGIN
    WITH change AS MATERIALIZED (
        SELECT * FROM json_to_recordset(changes) AS c(
            id uuid, lease_token bigint, worker text, state text, attempt integer, run_at timestamptz, output_json text,
            error_json text, started_at timestamptz, cost_cents double precision, progress_json text, remove boolean,
            outcome text, tried integer, by text, ended_at timestamptz, blamed boolean, own_error text, logs_json text,
            spent double precision, "then" json, audit json, crashes integer, snoozes integer)
    ), taken AS (
        -- as in rota.succeed
        DELETE FROM rota.running WHERE id = ANY (ARRAY(SELECT c.id FROM change AS c))
           AND ((id, lease_token, worker) IN (SELECT c.id, c.lease_token, c.worker FROM change AS c)) IS TRUE
        RETURNING *
    ), held AS MATERIALIZED (
        SELECT r.*, c.state, c.attempt AS counted, coalesce(c.run_at, now) AS next_at, c.output_json::json AS output,
               c.error_json::json AS fault, least(coalesce(c.started_at, r.started_at), now) AS began_at,
               c.started_at AS code_began,
               nullif(coalesce(r.cost_cents, 0) + coalesce(c.cost_cents, 0), 0) AS cost,
               coalesce(c.progress_json::json, r.progress) AS reached, coalesce(c.remove, false) AS remove,
               nullif(coalesce(c.crashes, r.crashes), 0) AS lost,
               nullif(coalesce(c.snoozes, r.snoozes), 0) AS snoozed,
               CASE WHEN c.started_at IS NULL AND c.crashes IS NULL THEN r.expires_at END AS still_expires,
               c.outcome, c.tried, c.by, c.ended_at, c.blamed, c.own_error, c.logs_json, c.spent,
               c."then", c.audit, c.cost_cents AS charged
          FROM taken AS r JOIN change AS c ON c.id = r.id AND c.lease_token = r.lease_token AND c.worker = r.worker
    ), finished AS (
        INSERT INTO rota.done (
            {carried except attempt, cost_cents, started_at, error, progress, crashes, snoozes},
            attempt, cost_cents, started_at, error, progress, crashes, snoozes, state, finished_at, worker, output)
        SELECT {carried except attempt, cost_cents, started_at, error, progress, crashes, snoozes},
               counted, cost, began_at, fault, reached, lost, snoozed, state, now, worker, output
          FROM held WHERE state <> 'queued' AND NOT remove
    ), returned AS (
        INSERT INTO rota.queued (
            {carried except run_at, attempt, cost_cents, started_at, error, progress, crashes, expires_at, snoozes},
            run_at, attempt, cost_cents, error, progress, crashes, expires_at, snoozes, cancel_requested, due, segment,
            lane)
        SELECT {carried except run_at, attempt, cost_cents, started_at, error, progress, crashes, expires_at, snoozes},
               next_at, counted, cost, fault, reached, lost, still_expires, snoozed, cancel_requested, next_at <= now,
               {newest segment}, {line lane}
          FROM held WHERE state = 'queued'
    ), recorded AS (
        INSERT INTO rota.attempts (
            job, lease_token, attempt, outcome, worker, started_at, finished_at, error, logs, cost_cents)
        SELECT id, lease_token, tried, outcome, by, began_at, ended_at,
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
           array_agg(tenant) FILTER (WHERE schedule IS NOT NULL AND state <> 'queued'),
           array_agg(schedule) FILTER (WHERE schedule IS NOT NULL AND state <> 'queued'),
           array_agg(state) FILTER (WHERE schedule IS NOT NULL AND state <> 'queued'),
           array_agg(code_began) FILTER (WHERE schedule IS NOT NULL AND state <> 'queued'),
           array_agg(DISTINCT queue) FILTER (WHERE state = 'queued' AND next_at <= now),
           array_agg(tenant) FILTER (WHERE charged > 0), array_agg(charged) FILTER (WHERE charged > 0),
           {freed lanes}, array_agg(queue) FILTER (WHERE ruled & 1 <> 0),
           json_agg(json_build_array(queue, task, tenant, concurrency_key, units, started_at)) FILTER (
               WHERE state = 'queued' AND ruled & 16 <> 0 AND code_began IS NULL AND outcome IS NULL),
           (SELECT json_agg(f) FROM held AS h, LATERAL json_array_elements(h."then") AS f WHERE h."then" IS NOT NULL),
           (SELECT json_agg(l) FROM held AS h, LATERAL json_array_elements(h.audit) AS l WHERE h.audit IS NOT NULL)
      INTO wanted, held, ended, queues, tasks, states, tenants, keys, removed, run_tenants, run_names, run_states, run_began,
           woken, payers, amounts, freed, slots, unbegun, follow, lines
      FROM held;
    IF payers IS NOT NULL THEN
        PERFORM rota.spend(payers, amounts, now);
    END IF;
    IF unbegun IS NOT NULL THEN
        PERFORM rota.give_back(unbegun, now);
    END IF;
    IF ended IS NOT NULL THEN
        PERFORM rota.count_ended(queues, tasks, states, array_fill(now, ARRAY[cardinality(ended)]), 1);
        IF run_names IS NOT NULL THEN
            PERFORM rota.count_runs(run_tenants, run_names, run_states, run_began,
                                    array_fill(now, ARRAY[cardinality(run_names)]), 0, 1);
        END IF;
        PERFORM rota.notify_ended(ended);
        IF array_remove(keys, NULL) <> '{}' THEN
            PERFORM rota.end_keys(
                tenants, keys, ended, ARRAY(SELECT s IN ('succeeded', 'removed') FROM unnest(states) AS s), now);
        END IF;
    END IF;
    IF removed IS NOT NULL THEN
        PERFORM rota.delete_details(removed);
    END IF;
    IF follow IS NOT NULL THEN
        PERFORM FROM rota.insert_jobs(follow, now, true, false);
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
