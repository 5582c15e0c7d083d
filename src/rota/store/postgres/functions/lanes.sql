-- Lanes: who shares a claim, and where jobs wait that may not begin. The line of a queue is its due jobs in order.
-- A job that a claim meets but may not take is held: it leaves the line once, waits in the lane of what holds it
-- up, and is served from there. Nothing is brought back, so no wake-up can be lost.

-- There are tenants beside the default one: from now on claims share between them. In the caller's transaction,
-- which may be long: so it never waits, and another program notes it later.
CREATE FUNCTION rota.note_tenants() RETURNS void
LANGUAGE plpgsql
SET search_path = rota, pg_temp
SET enable_seqscan = off
AS $$
BEGIN
    IF {sees newest} AND has_table_privilege('rota.segments', 'UPDATE') THEN
        UPDATE rota.segments SET version = version + 1, fair = true, many = true
         WHERE version = (SELECT s.version FROM rota.segments AS s ORDER BY s.version DESC LIMIT 1
                             FOR UPDATE SKIP LOCKED) AND NOT many;
    END IF;
END
$$;

-- Jobs at the front of the lanes that the caller may not take leave the line, so that a million of them are
-- passed once, and not with every claim. It reads no further than a claim of lim jobs does; the more it finds
-- the further, up to some thousands of jobs for one claim to move.
-- tasks: the caller's, NULL for any; exclude_tenants: those it skips, NULL for none.
CREATE FUNCTION rota.hold(lanes text[], tasks text[], exclude_tenants text[], lim integer) RETURNS void
LANGUAGE plpgsql
SET search_path = rota, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    most CONSTANT integer := 5000;
    reach integer := greatest(lim, {many passed}) / greatest(cardinality(lanes), 1) + 1;
    moved integer;
BEGIN
    IF NOT (SELECT s.fair FROM rota.segments AS s ORDER BY s.version DESC LIMIT 1) THEN
        -- perhaps the claim has only passed what other sessions were taking
        PERFORM FROM rota.list_strands(lanes) AS l, LATERAL (
            SELECT q.tenant, q.task FROM rota.queued AS q
             WHERE q.due AND q.segment = l.segment AND q.queue = l.queue
               AND (q.rank, q.run_at, q.id) > (l.rank, l.run_at, l.id)
             ORDER BY q.rank, q.run_at, q.id LIMIT reach) AS front
          WHERE NOT front.task = ANY (tasks) OR front.tenant = ANY (exclude_tenants) LIMIT 1;
        IF NOT FOUND THEN
            RETURN;
        END IF;
        UPDATE rota.segments SET version = version + 1, fair = true
         WHERE version = (SELECT s.version FROM rota.segments AS s ORDER BY s.version DESC LIMIT 1
                             FOR UPDATE SKIP LOCKED);
        IF NOT FOUND THEN
            RETURN;  -- another session changes it: the next claim will do
        END IF;
    END IF;
    LOOP
        UPDATE rota.queued SET
            due = NULL, lane = CASE WHEN tasks IS NULL OR task = ANY (tasks) THEN '' ELSE 't:' || task END
         WHERE ctid = ANY (ARRAY(
            SELECT ctid FROM rota.queued
             WHERE due AND ctid = ANY (ARRAY(
                   SELECT front.ctid
                     FROM rota.list_strands(lanes) AS l, LATERAL (
                       SELECT q.ctid, q.tenant, q.task FROM rota.queued AS q
                        WHERE q.due AND q.segment = l.segment AND q.queue = l.queue
                          AND (q.rank, q.run_at, q.id) > (l.rank, l.run_at, l.id)
                        ORDER BY q.rank, q.run_at, q.id LIMIT reach) AS front
                    WHERE NOT front.task = ANY (tasks) OR front.tenant = ANY (exclude_tenants)))
               FOR UPDATE SKIP LOCKED));
        GET DIAGNOSTICS moved = ROW_COUNT;
        EXIT WHEN moved = 0 OR reach * cardinality(lanes) > most;
        reach := reach * 4;
    END LOOP;
END
$$;

-- The queues that hold jobs, one index probe each.
CREATE FUNCTION rota.held_queues(queues text[], exclude text[]) RETURNS text[]
LANGUAGE plpgsql STABLE
SET search_path = rota, pg_temp
AS $$
BEGIN
    IF queues IS NOT NULL THEN
        RETURN '{}';  -- they are looked into anyway
    END IF;
    RETURN ARRAY(
        WITH RECURSIVE lane(queue) AS (
            (SELECT q.queue FROM rota.queued AS q WHERE q.due IS NULL ORDER BY q.queue LIMIT 1)
            UNION ALL
            SELECT (SELECT q.queue FROM rota.queued AS q WHERE q.due IS NULL AND q.queue > lane.queue
                     ORDER BY q.queue LIMIT 1)
              FROM lane WHERE lane.queue IS NOT NULL)
        SELECT queue FROM lane WHERE queue IS NOT NULL AND NOT queue = ANY (exclude));
END
$$;

-- Lanes of held jobs of one queue and rank, from a lane and tenant on and round, up to most. Closed ones, that the
-- caller may not take from, are named as well: they count. One index probe each.
CREATE FUNCTION rota.walk_lanes(
    queue text, rank integer, from_lane text, from_tenant text, most integer, tasks text[], exclude_tenants text[])
RETURNS TABLE (lane text, tenant text, is_closed boolean)
LANGUAGE plpgsql
SET search_path = rota, pg_temp
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH RECURSIVE step(lane, tenant, n, has_wrapped, is_closed) AS (
        SELECT from_lane COLLATE "C", from_tenant COLLATE "C", 0, false, false
        UNION ALL
        SELECT b.lane, b.tenant, s.n + 1, b.has_wrapped,
               CASE WHEN b.lane = '' THEN coalesce(b.tenant = ANY (exclude_tenants), false)
                    ELSE b.lane LIKE 't:%' AND NOT coalesce(substr(b.lane, 3) = ANY (tasks), true) END
          FROM step AS s, LATERAL (
            (SELECT q.lane, q.tenant, s.has_wrapped FROM rota.queued AS q
              WHERE q.due IS NULL AND q.queue = walk_lanes.queue AND q.rank = walk_lanes.rank
                -- of a task that the caller does not know, no tenant
                AND (q.lane, q.tenant) > (CASE WHEN s.is_closed AND s.lane <> '' THEN s.lane || chr(1) ELSE s.lane END, s.tenant)
              ORDER BY q.lane, q.tenant LIMIT 1)
            UNION ALL
            (SELECT q.lane, q.tenant, true FROM rota.queued AS q
              WHERE NOT s.has_wrapped AND q.due IS NULL AND q.queue = walk_lanes.queue AND q.rank = walk_lanes.rank
              ORDER BY q.lane, q.tenant LIMIT 1)
            LIMIT 1) AS b
         WHERE s.n < most AND NOT (b.has_wrapped AND (b.lane, b.tenant) > (from_lane, from_tenant)))
    SELECT s.lane, s.tenant, s.is_closed FROM step AS s WHERE s.n > 0;
END
$$;

-- The same over all queues and ranks, from a place on to the end.
CREATE FUNCTION rota.walk_held(
    from_queue text, from_rank integer, from_lane text, from_tenant text, most integer, queues text[], exclude text[],
    tasks text[], exclude_tenants text[])
RETURNS TABLE (queue text, rank integer, lane text, tenant text, is_closed boolean)
LANGUAGE plpgsql
SET search_path = rota, pg_temp
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH RECURSIVE step(queue, rank, lane, tenant, n, is_closed, is_passed) AS (  -- passed: its whole queue
        SELECT from_queue COLLATE "C", from_rank, from_lane COLLATE "C", from_tenant COLLATE "C", 0, false, false
        UNION ALL
        SELECT b.queue, b.rank, b.lane, b.tenant, s.n + 1,
               CASE WHEN b.lane = '' THEN coalesce(b.tenant = ANY (exclude_tenants), false)
                    ELSE b.lane LIKE 't:%' AND NOT coalesce(substr(b.lane, 3) = ANY (tasks), true) END,
               b.queue = ANY (exclude) OR NOT coalesce(b.queue = ANY (queues), true)
          FROM step AS s, LATERAL (
            SELECT q.queue, q.rank, q.lane, q.tenant FROM rota.queued AS q
             WHERE q.due IS NULL
               AND (q.queue, q.rank, q.lane, q.tenant) > (
                   CASE WHEN s.is_passed THEN s.queue || chr(1) ELSE s.queue END, s.rank,
                   CASE WHEN s.is_closed AND s.lane <> '' THEN s.lane || chr(1) ELSE s.lane END, s.tenant)
             ORDER BY q.queue, q.rank, q.lane, q.tenant LIMIT 1) AS b
         WHERE s.n < most)
    SELECT s.queue, s.rank, s.lane, s.tenant, s.is_closed OR s.is_passed FROM step AS s WHERE s.n > 0;
END
$$;

-- The lanes of held jobs that this round of a claim looks into: some in turn (step: their order), those where a place
-- was freed, and those of the candidates, whose own turn comes after. Closed ones have no tenant. again: lanes that the
-- last round did not read to an end; those queues have had their turn.
CREATE FUNCTION rota.choose_lanes(
    pick integer[], has_held boolean[], names text[], held_to integer[], from_lanes text[], from_tenants text[], rank integer,
    js integer[], tenants text[], task_names text[], keys text[], freed text[], again_queues text[], again_lanes text[],
    again_tenants text[], tasks text[], exclude_tenants text[], in_turn_too boolean)
RETURNS TABLE (j integer, lane text, tenant text, step integer)
LANGUAGE plpgsql
SET search_path = rota, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    in_turn CONSTANT integer := {round lanes};
    fresh CONSTANT integer[] := ARRAY(  -- queues whose lanes this claim has not looked into yet
        SELECT u.j FROM unnest(pick, has_held) WITH ORDINALITY AS u(i, has_held, j)
         WHERE in_turn_too AND u.has_held AND held_to[u.i] <> choose_lanes.rank
           AND NOT coalesce(names[u.i] = ANY (again_queues), false) ORDER BY random() LIMIT in_turn);
BEGIN
    RETURN QUERY
    SELECT x.j, x.lane, x.tenant, max(x.step)::integer FROM (
        SELECT f.j, w.lane, CASE WHEN NOT w.is_closed THEN w.tenant END AS tenant, w.step
          FROM unnest(fresh) AS f(j), LATERAL rota.walk_lanes(
               names[pick[f.j]], choose_lanes.rank, coalesce(from_lanes[pick[f.j]], ''), coalesce(from_tenants[pick[f.j]], ''),
               greatest(in_turn / greatest(cardinality(fresh), 1), 1), tasks, exclude_tenants)
               WITH ORDINALITY AS w(lane, tenant, is_closed, step)
        UNION ALL
        SELECT f.j, h.lane, h.tenant, NULL
          FROM unnest(fresh) AS f(j), (SELECT DISTINCT l FROM unnest(freed) AS l) AS d(lane), LATERAL (
               SELECT q.lane, q.tenant FROM rota.queued AS q
                WHERE q.due IS NULL AND q.queue = names[pick[f.j]] AND q.rank = choose_lanes.rank
                  AND q.lane = CASE WHEN d.lane LIKE 'n:%' THEN '' ELSE d.lane END
                  AND (q.tenant = substr(d.lane, 3) OR d.lane NOT LIKE 'n:%')
                ORDER BY q.tenant LIMIT 1) AS h
        UNION ALL
        SELECT p.j::integer, a.lane, a.tenant, NULL
          FROM unnest(again_queues, again_lanes, again_tenants) AS a(queue, lane, tenant)
          JOIN unnest(pick) WITH ORDINALITY AS p(i, j) ON names[p.i] = a.queue
        UNION ALL
        SELECT c.j, h.lane, h.tenant, NULL
          FROM (SELECT DISTINCT u.j, u.tenant, l.lane
                  FROM unnest(js, tenants, task_names, keys) AS u(j, tenant, task, key), LATERAL (
                       VALUES (''), ('t:' || u.task), ('k:' || u.key)) AS l(lane)
                 WHERE has_held[u.j] AND l.lane IS NOT NULL) AS c, LATERAL (
               SELECT q.lane, q.tenant FROM rota.queued AS q
                WHERE q.due IS NULL AND q.queue = names[pick[c.j]] AND q.rank = choose_lanes.rank AND q.lane = c.lane
                  AND q.tenant = c.tenant LIMIT 1) AS h) AS x
     GROUP BY x.j, x.lane, x.tenant;
END
$$;

-- The jobs of these keys that wait for their retry, after a crash too, and are due, but not among the given ones: the first of each.
CREATE FUNCTION rota.pick_retried(
    known_keys text[], known_ids uuid[], names text[], rank integer, known_tasks text[], exclude_tenants text[],
    OUT js integer[], OUT queues text[], OUT places tid[], OUT ids uuid[], OUT ats timestamptz[], OUT tenants text[], OUT tasks text[],
    OUT keys text[], OUT units integer[], OUT prices double precision[], OUT froms smallint[], OUT lanes text[])
LANGUAGE plpgsql
SET search_path = rota, pg_temp
AS $$
#variable_conflict use_column
BEGIN
    SELECT array_agg(n.j::integer), array_agg(f.queue), array_agg(f.place), array_agg(f.id), array_agg(f.run_at), array_agg(f.tenant),
           array_agg(f.task), array_agg(f.key), array_agg(f.units), array_agg(f.price),
           array_agg(CASE WHEN f.is_held THEN 1 ELSE 2 END::smallint), array_agg(f.lane)
      INTO js, queues, places, ids, ats, tenants, tasks, keys, units, prices, froms, lanes
      FROM (SELECT DISTINCT k FROM unnest(known_keys) AS k WHERE k IS NOT NULL) AS k(key), LATERAL (
           SELECT q.ctid AS place, q.queue, q.id, q.run_at, q.tenant, q.task, q.concurrency_key AS key, q.units, q.price, q.lane,
                  q.due, q.due IS NULL AS is_held, q.rank
             FROM rota.queued AS q WHERE q.concurrency_key = k.key AND (q.attempt > 0 OR q.crashes > 0)
            ORDER BY q.rank, q.run_at, q.id LIMIT 1) AS f
      JOIN unnest(names) WITH ORDINALITY AS n(queue, j) ON n.queue = f.queue
      LEFT JOIN unnest(known_ids) AS u(id) ON u.id = f.id
     WHERE u.id IS NULL AND f.due IS NOT false AND f.rank = coalesce(pick_retried.rank, f.rank)
       AND (known_tasks IS NULL OR f.task = ANY (known_tasks))
       AND (exclude_tenants IS NULL OR NOT f.tenant = ANY (exclude_tenants));
END
$$;

-- Held jobs of the keys of these jobs that come before them, in whatever rank and lane, but are not among them: of each
-- key the first. So a key keeps its order.
CREATE FUNCTION rota.pick_earlier(
    known_js integer[], known_keys text[], known_queues text[], known_tenants text[], known_ranks integer[],
    known_ats timestamptz[], known_ids uuid[], known_tasks text[], exclude_tenants text[],
    OUT js integer[], OUT queues text[], OUT places tid[], OUT ids uuid[], OUT ats timestamptz[], OUT tenants text[], OUT tasks text[],
    OUT keys text[], OUT units integer[], OUT prices double precision[], OUT froms smallint[], OUT lanes text[], OUT ranks integer[])
LANGUAGE plpgsql
SET search_path = rota, pg_temp
SET enable_sort = on
AS $$
#variable_conflict use_column
DECLARE
    most CONSTANT integer := 8;
    most_passed CONSTANT integer := 64;  -- of tasks that the caller may not take
BEGIN
    IF NOT EXISTS (SELECT FROM rota.queued AS q WHERE q.due IS NULL AND q.concurrency_key IS NOT NULL) THEN
        RETURN;
    END IF;
    SELECT array_agg(x.j), array_agg(x.queue), array_agg(x.place), array_agg(x.id), array_agg(x.run_at), array_agg(x.tenant),
           array_agg(x.task), array_agg(x.key), array_agg(x.units), array_agg(x.price), array_agg(1::smallint), array_agg(x.lane),
           array_agg(x.rank)
      INTO js, queues, places, ids, ats, tenants, tasks, keys, units, prices, froms, lanes, ranks
      FROM (SELECT k.j, f.*
              FROM (SELECT DISTINCT ON (u.key, u.queue, u.tenant) u.*
                      FROM unnest(known_js, known_keys, known_queues, known_tenants, known_ranks, known_ats, known_ids)
                           AS u(j, key, queue, tenant, rank, run_at, id)
                     WHERE u.key IS NOT NULL AND NOT coalesce(u.tenant = ANY (exclude_tenants), false)
                     ORDER BY u.key, u.queue, u.tenant, u.rank DESC, u.run_at DESC, u.id DESC) AS k, LATERAL (
                   SELECT l.* FROM (
                       SELECT q.ctid AS place, q.queue, q.id, q.run_at, q.tenant, q.task, q.concurrency_key AS key, q.units, q.price,
                              q.lane, q.rank
                         FROM rota.queued AS q
                        WHERE q.due IS NULL AND q.concurrency_key = k.key AND q.queue = k.queue AND q.tenant = k.tenant
                          AND (q.rank, q.run_at, q.id) < (k.rank, k.run_at, k.id)
                        ORDER BY q.rank, q.run_at, q.id LIMIT most_passed) AS l
                    WHERE known_tasks IS NULL OR l.task = ANY (known_tasks) LIMIT most) AS f
              LEFT JOIN unnest(known_ids) AS u(id) ON u.id = f.id
             WHERE u.id IS NULL
             ORDER BY f.rank, f.run_at, f.id) AS x;
END
$$;

-- The verdicts on these jobs, so that a key with a limit on what runs keeps its order: behind one that may not begin, those of
-- the same queue, tenant and key wait for the key (8). before: the verdicts with which rota.admit began, NULL if that comes next.
-- is_again: some wait for the key only because of jobs that do not begin either. They are to be weighed again.
CREATE FUNCTION rota.keep_key_order(
    queues text[], tenants text[], keys text[], rules integer, before smallint[], INOUT verdict smallint[], OUT is_again boolean)
LANGUAGE plpgsql
SET search_path = rota, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    -- where the key is full, those behind are held up as well, and perhaps one of another tenant has its place
    passable CONSTANT smallint[] := CASE WHEN before IS NULL THEN '{0}' ELSE '{0,8}' END;
    stuck CONSTANT text[] := ARRAY(SELECT DISTINCT u.key FROM unnest(keys, verdict) AS u(key, verdict)
                                    WHERE u.key IS NOT NULL AND NOT u.verdict = ANY (passable));
    ordered text[];
BEGIN
    is_again := false;
    IF NOT EXISTS (SELECT FROM unnest(keys, verdict) AS u(key, verdict) WHERE u.verdict = ANY (passable) AND u.key = ANY (stuck)) THEN
        RETURN;
    END IF;
    ordered := ARRAY(
        SELECT r.subject
          FROM rota.find_rooms(8, stuck, ARRAY(
                  SELECT l FROM rota.limits AS l
                   WHERE l.name = ANY (rota.name_limits(NULL, NULL, NULL, stuck, rules))
                     AND (l.running > 0 OR l.running IS NULL) AND coalesce(l.running, l.every_ns) IS NOT NULL
                     AND (l.every_ns IS NULL OR l.every_ns > 0 AND l.burst > 0)), '{}', NULL, true, now(), 0) AS r
         WHERE r.counts);
    SELECT array_agg(CASE WHEN NOT x.is_weighed THEN x.verdict WHEN x.is_behind THEN 8 ELSE 0 END::smallint ORDER BY x.i),
           bool_or(x.is_weighed AND x.verdict = 8 AND NOT x.is_behind)
      INTO verdict, is_again
      FROM (SELECT u.i, u.verdict,
                   u.verdict = ANY (passable) AND coalesce(u.earlier, 0) = 0 AND coalesce(u.key = ANY (ordered), false) AS is_weighed,
                   coalesce(bool_or(NOT u.verdict = ANY (passable)) OVER (
                       PARTITION BY u.queue, u.tenant, u.key ORDER BY u.i ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), false)
                       AS is_behind
              FROM unnest(queues, tenants, keys, verdict, before) WITH ORDINALITY AS u(queue, tenant, key, verdict, earlier, i)) AS x;
END
$$;

-- Once a minute: notes tenants that a role stored which may not note them itself, forgets buckets that are full, and lets
-- claims be plain again once nothing is held and there are neither tenants nor rules.
CREATE FUNCTION rota.check_lanes() RETURNS void
LANGUAGE plpgsql
SET search_path = rota, pg_temp
AS $$
DECLARE
    s rota.segments%ROWTYPE;
BEGIN
    SELECT * INTO s FROM rota.segments ORDER BY version DESC LIMIT 1;
    IF NOT s.many AND EXISTS (SELECT FROM rota.queued AS q WHERE q.due AND q.lane IS NOT NULL) THEN
        PERFORM rota.note_tenants();
    END IF;
    DELETE FROM rota.buckets WHERE ctid = ANY (ARRAY(
        SELECT b.ctid FROM rota.buckets AS b WHERE b.full_ns < (extract(epoch FROM clock_timestamp() - interval '1 minute') * 1e9)::bigint
         LIMIT 20000 FOR UPDATE SKIP LOCKED));
    -- no claim is under way, hence none that holds jobs
    IF s.fair AND NOT s.many AND s.rules = 0 AND pg_try_advisory_xact_lock({rules lock}) THEN
        UPDATE rota.segments AS g SET version = g.version + 1, fair = false
         WHERE g.version = (SELECT max(m.version) FROM rota.segments AS m) AND g.fair AND NOT g.many AND g.rules = 0
           AND NOT EXISTS (SELECT FROM rota.queued AS q WHERE q.due IS NULL);
    END IF;
END
$$;
