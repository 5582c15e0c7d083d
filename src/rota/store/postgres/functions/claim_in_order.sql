-- Beside tenants and limits, too, most claims of busy workers can take the next jobs of a queue just as they come.
-- Whether this one can is found with a few aggregates; rota.claim_fairly, which takes all others, costs far more.

-- The next lim jobs of the only queue that the claim looks into, if all of them may begin in this order: no tenant has
-- more than its share of them, nothing that is held comes before them, and the limits admit them all. places: NULL if
-- not so. common: which limits they then count under, see rota.running.ruled; keyed: those with a key, which besides.
-- since: where to start, NULL for the front; then there may be fewer. place: where the next claim starts.
-- again_at: when to look for held jobs. is_ample: see rota.admit. state: what the last claim said; said: what to say next,
-- if that has changed. may_wait: not if its limits have been locked, or waited for.
-- walk: of this many tenants, in turn, the first job comes along wherever it is in the line, so that none waits behind
-- a line that shows others, however many jobs these have.
CREATE FUNCTION rota.pick_in_order(
    lim integer, queues text[], exclude text[], known_tasks text[], exclude_tenants text[], since json, free integer,
    state json, freed text[], s rota.segments, walk integer, now timestamptz,
    OUT places tid[], OUT common integer, OUT keyed integer, OUT place text, OUT again_at timestamptz, OUT is_ample boolean,
    OUT said json, OUT may_wait boolean)
LANGUAGE plpgsql
SET search_path = rota, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    is_limited CONSTANT boolean := s.rules & 95 <> 0;
    by_key CONSTANT boolean := s.rules & 24 <> 0;
    has_held CONSTANT boolean := EXISTS (SELECT FROM rota.queued AS q WHERE q.due IS NULL);
    locks CONSTANT text[] := CASE WHEN is_limited THEN ARRAY(SELECT json_array_elements_text(state->'locks')) END;
    -- when held jobs are looked into again, if none of them could begin; after a rule was changed, at once
    lanes_at timestamptz := CASE WHEN has_held AND (state->>'version')::bigint = s.version
                                 THEN to_timestamp((state->>'lanes_at')::double precision) END;
    is_closed boolean;  -- none of the held jobs could begin now, for certain
    is_whole boolean;  -- it takes all that is due
    names text[];
    name text; from_rank integer := -2147483648;
    from_at timestamptz := '-infinity'; from_id uuid := 'ffffffff-ffff-ffff-ffff-ffffffffffff';
    -- transactions under way, and the age of later ones; our own has the age 0
    busy xid[] := '{}'; busy_from integer;
    early tid[] := '{}'; walked text;  -- jobs of tenants in turn, and the last of these
    n integer; n_line integer; is_busy boolean; n_tenants integer; a_tenant text; a_rank integer; is_level boolean;
    tenants text[]; tasks text[]; keys text[]; units integer[];
    news jsonb := '{}';
BEGIN
    may_wait := true;
    IF s.closed <> '{}' OR s.old_segment <> '{}' OR is_limited AND NOT {sees newest} THEN
        RETURN;
    END IF;
    IF has_held AND (lanes_at IS NULL OR rota.has_held_of(freed)) THEN
        is_closed := rota.are_lanes_closed(queues, exclude, known_tasks, exclude_tenants, s.rules);
        IF NOT is_closed THEN
            RETURN;
        END IF;
    END IF;
    IF since IS NULL THEN
        names := rota.lanes(queues, exclude, s.newest);
        name := names[1];
        IF cardinality(names) <> 1 THEN
            RETURN;
        END IF;
        walk := 0;
    ELSIF json_array_length(since) = 1 THEN
        SELECT c.queue, c.rank, c.run_at, c.id INTO name, from_rank, from_at, from_id
          FROM json_to_record(since->0) AS c(queue text, rank integer, run_at timestamptz, id uuid);
        IF EXISTS (SELECT FROM rota.queued AS q
                    WHERE q.due AND q.segment = s.newest AND q.queue = name AND q.rank < from_rank) THEN
            from_rank := -2147483648;
            walk := 0;
        END IF;
    ELSE
        RETURN;
    END IF;
    IF locks <> '{}' THEN
        may_wait := false;
        IF (SELECT l.unlocked <> '{}' FROM rota.lock_limits(locks, true) AS l) THEN
            RETURN;
        END IF;
    END IF;
    -- the line, but not what another session is just taking; under a limit for keys that one has to be waited for, if it has one
    busy := ARRAY(SELECT x::xid FROM pg_snapshot_xip(pg_current_snapshot()) AS x);
    busy_from := age(pg_snapshot_xmax(pg_current_snapshot())::xid);
    IF s.many AND walk > 0 AND state->>'only' IS DISTINCT FROM name THEN
        SELECT coalesce(array_agg(t.place) FILTER (
                   WHERE NOT (t.xmax = ANY (busy) OR age(t.xmax) <= busy_from AND age(t.xmax) <> 0)
                     AND (known_tasks IS NULL OR t.task = ANY (known_tasks))
                     AND (exclude_tenants IS NULL OR NOT t.tenant = ANY (exclude_tenants))), '{}'),
               (array_agg(t.tenant ORDER BY t.i DESC))[1]
          INTO early, walked
          FROM (SELECT w.i, w.tenant, f.*
                  FROM rota.walk_tenants(ARRAY[s.newest], name, from_rank,
                                         CASE WHEN state->'walk'->>0 = name THEN state->'walk'->>1 ELSE '' END, walk)
                       WITH ORDINALITY AS w(tenant, i), LATERAL (
                       SELECT q.ctid AS place, q.task, q.xmax FROM rota.queued AS q
                        WHERE q.due AND q.lane IS NOT NULL AND q.segment = s.newest AND q.queue = name AND q.rank = from_rank
                          AND q.tenant >= w.tenant AND q.tenant <= w.tenant  -- see shares.sql
                        ORDER BY q.tenant, q.run_at, q.id LIMIT 1) AS f) AS t;
        news := jsonb_build_object('walk', jsonb_build_array(name, walked));
    END IF;
    SELECT array_agg(f.place), count(*), count(*) FILTER (WHERE f.in_line), bool_or(f.is_busy),
           min(f.rank), min(f.rank) = max(f.rank), min(f.tenant),
           array_agg(f.tenant) FILTER (WHERE s.many OR has_held OR s.rules & 68 <> 0),
           array_agg(f.task) FILTER (WHERE has_held OR s.rules & 2 <> 0),
           array_agg(f.key) FILTER (WHERE f.key IS NOT NULL AND (has_held OR by_key)),
           array_agg(f.units) FILTER (WHERE f.units IS NOT NULL)
      INTO places, n, n_line, is_busy, a_rank, is_level, a_tenant, tenants, tasks, keys, units
      FROM (SELECT * FROM (
                SELECT q.ctid AS place, q.rank, q.tenant, q.task, q.concurrency_key AS key, q.units, true AS in_line,
                       q.xmax = ANY (busy) OR age(q.xmax) <= busy_from AND age(q.xmax) <> 0 AS is_busy
                  FROM rota.queued AS q
                 WHERE q.due AND q.segment = s.newest AND q.queue = name
                   AND (by_key AND q.concurrency_key IS NOT NULL
                        OR NOT (q.xmax = ANY (busy) OR age(q.xmax) <= busy_from AND age(q.xmax) <> 0))
                   AND (q.rank, q.run_at, q.id) > (from_rank, from_at, from_id)
                   AND (known_tasks IS NULL OR q.task = ANY (known_tasks))
                   AND (exclude_tenants IS NULL OR NOT q.tenant = ANY (exclude_tenants))
                   AND NOT q.ctid = ANY (early)
                 ORDER BY q.rank, q.run_at, q.id LIMIT lim - cardinality(early)) AS l
            UNION ALL
            SELECT q.ctid, q.rank, q.tenant, q.task, q.concurrency_key, q.units, false, false
              FROM rota.queued AS q WHERE q.ctid = ANY (early) AND q.due) AS f;
    -- apart: a DISTINCT among the aggregates would sort what all of them read, and the last place in line would not be last
    n_tenants := CASE WHEN s.many THEN (SELECT count(DISTINCT t) FROM unnest(tenants[1:n_line]) AS t) ELSE 0 END;
    is_whole := n > 0 AND n < lim AND since IS NULL AND s.awaited = '{}' AND s.late_from IS NULL;
    IF n < lim AND NOT is_whole OR is_busy OR NOT is_level AND (s.many AND NOT is_whole OR has_held OR early <> '{}')
       OR n_tenants > 1 AND NOT is_whole AND (n_tenants < n_line OR n < {fair claim} OR s.rules & 32 <> 0)
       OR has_held AND rota.are_behind_held(name, a_rank, tenants, tasks, keys) THEN
        places := NULL;
        RETURN;
    END IF;
    IF n_tenants = 1 AND NOT is_whole THEN
        IF NOT rota.is_only_tenant(s.newest, name, a_rank, a_tenant) THEN
            places := NULL;
            RETURN;
        END IF;
    END IF;
    IF (n_tenants = 1) <> coalesce(state->>'only' = name, false) THEN  -- a single tenant needs no walk
        news := news || jsonb_build_object('only', CASE WHEN n_tenants = 1 THEN name END);
    END IF;
    IF has_held AND (is_whole OR now >= lanes_at) THEN
        is_closed := coalesce(is_closed, rota.are_lanes_closed(queues, exclude, known_tasks, exclude_tenants, s.rules));
        IF NOT is_closed AND (NOT is_whole OR EXISTS (  -- more urgent ones may begin
               SELECT FROM rota.queued AS q WHERE q.due IS NULL AND q.queue = name AND q.rank < a_rank)) THEN
            places := NULL;
            RETURN;
        END IF;
    END IF;
    IF is_closed THEN
        news := news || jsonb_build_object('version', s.version, 'lanes_at', extract(epoch FROM now)::double precision + 0.04);
    ELSIF has_held AND is_whole THEN
        again_at := greatest(now, lanes_at);
        IF now >= lanes_at THEN
            news := news || '{"lanes_at": null}';  -- the next claim looks
        END IF;
    END IF;
    common := 0; keyed := 0; is_ample := true;
    IF is_limited THEN
        SELECT a.common, a.keyed, a.is_ample INTO common, keyed, is_ample
          FROM rota.admit_in_order(name, tenants, tasks, keys, units, places, lim, free, locks, s.rules, now) AS a;
        IF common IS NULL THEN
            places := NULL;
            RETURN;
        END IF;
    END IF;
    IF news <> '{}' THEN
        said := coalesce(state::jsonb, '{}') || news;
    END IF;
    place := (SELECT json_build_array(json_build_object('queue', name, 'rank', q.rank, 'run_at', q.run_at, 'id', q.id))
                FROM rota.queued AS q WHERE q.ctid = places[n_line]);
END
$$;

-- Whether no other tenant has jobs in this part of a line.
CREATE FUNCTION rota.is_only_tenant(segment integer, queue text, rank integer, tenant text) RETURNS boolean
LANGUAGE plpgsql
SET search_path = rota, pg_temp
AS $$
#variable_conflict use_column
BEGIN
    -- on either side of it, as at its front lie the entries of all its jobs that are gone
    RETURN (SELECT q.tenant FROM rota.queued AS q
             WHERE q.due AND q.lane IS NOT NULL AND q.segment = is_only_tenant.segment AND q.queue = is_only_tenant.queue
               AND q.rank = is_only_tenant.rank AND q.tenant < is_only_tenant.tenant ORDER BY q.tenant LIMIT 1) IS NULL
       AND (SELECT q.tenant FROM rota.queued AS q
             WHERE q.due AND q.lane IS NOT NULL AND q.segment = is_only_tenant.segment AND q.queue = is_only_tenant.queue
               AND q.rank = is_only_tenant.rank AND q.tenant > is_only_tenant.tenant ORDER BY q.tenant LIMIT 1) IS NULL;
END
$$;

-- Whether jobs are held for what has become free. freed: see rota.claim_fairly.
CREATE FUNCTION rota.has_held_of(freed text[]) RETURNS boolean
LANGUAGE plpgsql
SET search_path = rota, pg_temp
AS $$
#variable_conflict use_column
BEGIN
    RETURN EXISTS (SELECT FROM unnest(freed) AS f WHERE f NOT LIKE 'k:%')
        OR EXISTS (SELECT FROM rota.queued AS q
                    WHERE q.due IS NULL AND q.concurrency_key = ANY (ARRAY(SELECT substr(f, 3) FROM unnest(freed) AS f)));
END
$$;

-- Whether none of the jobs that are held in these queues could begin now, as can be seen with little effort: they are of
-- tasks that the caller does not know or of tenants that it leaves out, or their key is full.
CREATE FUNCTION rota.are_lanes_closed(queues text[], exclude text[], tasks text[], exclude_tenants text[], rules integer)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = rota, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    most CONSTANT integer := 16;
    lanes text[];
    keys text[];
    names text[];
BEGIN
    -- closed ones count, as they take time
    SELECT array_agg(l.lane) FILTER (WHERE NOT l.is_closed), array_agg(DISTINCT substr(l.lane, 3)) FILTER (WHERE NOT l.is_closed)
      INTO lanes, keys
      FROM rota.walk_held('', -2147483648, '', '', most + 1, queues, exclude, tasks, exclude_tenants) AS l HAVING count(*) <= most;
    IF NOT FOUND OR EXISTS (SELECT FROM unnest(lanes) AS l WHERE l NOT LIKE 'k:%') THEN
        RETURN false;
    END IF;
    IF lanes IS NULL THEN
        RETURN true;
    END IF;
    names := rota.name_limits(NULL, NULL, NULL, keys, rules);
    RETURN (SELECT count(*)
              FROM rota.find_rooms(8, keys, ARRAY(
                      SELECT l FROM rota.limits AS l
                       WHERE l.name = ANY (names) AND (l.running > 0 OR l.running IS NULL) AND coalesce(l.running, l.every_ns) IS NOT NULL
                         AND (l.every_ns IS NULL OR l.every_ns > 0 AND l.burst > 0)), '{}', NULL, true, now(), 0) AS r
             WHERE r.room <= 0) = cardinality(keys);
END
$$;

-- The queues that have limits, if there are no other rules, tenants or held jobs, and if nothing is due in these queues:
-- a claim that leaves them out can be plain. Otherwise NULL.
CREATE FUNCTION rota.idle_limited_queues(s rota.segments, queues text[], exclude text[], since json) RETURNS text[]
LANGUAGE plpgsql
SET search_path = rota, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    most CONSTANT integer := 16;
    found text[];
BEGIN
    IF s.rules <> 1 OR s.many OR s.closed <> '{}' OR s.old_segment <> '{}' OR EXISTS (SELECT FROM rota.queued AS q WHERE q.due IS NULL) THEN
        RETURN NULL;
    END IF;
    found := ARRAY(SELECT l.subject FROM rota.limits AS l WHERE l.scope = 'queue' LIMIT most + 1);
    IF cardinality(found) > most
       OR EXISTS (SELECT FROM json_array_elements(since) AS c WHERE c->>'queue' = ANY (found))
       OR EXISTS (SELECT FROM unnest(found) AS u(queue), LATERAL (
                         SELECT FROM rota.queued AS q WHERE q.due AND q.segment = s.newest AND q.queue = u.queue LIMIT 1) AS w
                   WHERE coalesce(u.queue = ANY (queues), true) AND NOT u.queue = ANY (exclude)) THEN
        RETURN NULL;
    END IF;
    RETURN found;
END
$$;

-- Whether jobs are held that come before these, which are of one queue and rank: of the same key, or in a lane of theirs.
CREATE FUNCTION rota.are_behind_held(queue text, rank integer, tenants text[], tasks text[], keys text[]) RETURNS boolean
LANGUAGE plpgsql
SET search_path = rota, pg_temp
AS $$
#variable_conflict use_column
BEGIN
    RETURN EXISTS (SELECT FROM rota.queued AS q
                    WHERE q.due IS NULL AND q.concurrency_key = ANY (keys) AND q.queue = are_behind_held.queue)
        OR EXISTS (SELECT FROM (SELECT DISTINCT u.tenant, u.task FROM unnest(tenants, tasks) AS u(tenant, task)) AS c,
                               LATERAL (VALUES (''), ('t:' || c.task)) AS l(lane), LATERAL (
                          SELECT FROM rota.queued AS q
                           WHERE q.due IS NULL AND q.queue = are_behind_held.queue AND q.rank = are_behind_held.rank AND q.lane = l.lane
                             AND q.tenant = c.tenant LIMIT 1) AS h);
END
$$;

-- Whether all these jobs of a queue may begin, where each limit concerns all of them or none; of keys: all that have
-- one. common, keyed: see rota.pick_in_order; NULL: no, or it is not as simple. What they take from buckets is taken.
-- locks: the limits that are locked. keys, units: without NULL.
CREATE FUNCTION rota.admit_in_order(
    queue text, tenants text[], tasks text[], keys text[], units integer[], places tid[], asked integer, free integer,
    locks text[], rules integer, now timestamptz, OUT common integer, OUT keyed integer,
    OUT is_ample boolean)
LANGUAGE plpgsql
SET search_path = rota, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    most_families CONSTANT integer := 16;
    now_ns CONSTANT bigint := (extract(epoch FROM now) * 1000000)::bigint * 1000;
    more CONSTANT bigint := coalesce((SELECT sum(u - 1) FROM unnest(units) AS u), 0);  -- units beyond one for each
    names text[] := '{}';
    limits rota.limits[]; family rota.limits; l rota.limits; rated rota.limits[] := '{}';
    is_of_keys boolean;
    n bigint;  -- jobs under the limit, or units that they take
    others bigint;  -- how many more have to fit in for it to be ample
    room bigint;
    bits integer; common_bits integer := 0; keyed_bits integer := 0;
BEGIN
    is_ample := true;
    IF rules & 128 <> 0 AND keys IS NOT NULL OR rules & 64 <> 0 AND EXISTS (
           SELECT FROM rota.tenants AS t WHERE t.name = ANY (tenants) AND t.budget IS NOT NULL) THEN
        RETURN;
    END IF;
    IF rules & 1 <> 0 THEN
        names := names || ('queue:' || queue);
    END IF;
    IF rules & 2 <> 0 THEN
        names := names || ARRAY(SELECT DISTINCT 'task:' || t FROM unnest(tasks) AS t);
    END IF;
    IF rules & 4 <> 0 THEN
        names := names || ARRAY(SELECT DISTINCT 'tenant:' || t FROM unnest(tenants) AS t);
    END IF;
    IF rules & 8 <> 0 THEN
        names := names || ARRAY(SELECT DISTINCT 'key:' || k FROM unnest(keys) AS k);
    END IF;
    limits := ARRAY(SELECT f FROM rota.limits AS f WHERE f.name = ANY (names));
    IF rules & 16 <> 0 AND keys IS NOT NULL THEN
        IF (SELECT count(*) FROM (SELECT FROM rota.limits AS f WHERE f.scope = 'family' LIMIT most_families + 1) AS c) > most_families THEN
            RETURN;
        END IF;
        SELECT f.* INTO family
          FROM rota.limits AS f, LATERAL (SELECT FROM unnest(keys) AS k WHERE starts_with(k, f.subject) LIMIT 1) AS k
         WHERE f.scope = 'family' AND (f.running > 0 OR f.running IS NULL) AND coalesce(f.running, f.every_ns) IS NOT NULL
           AND (f.every_ns IS NULL OR f.every_ns > 0 AND f.burst > 0)
         ORDER BY length(f.subject) DESC LIMIT 1;
        IF FOUND THEN
            limits := limits || family;
        END IF;
    END IF;
    FOREACH l IN ARRAY limits LOOP
        -- what was spoiled by hand holds nothing up
        CONTINUE WHEN NOT coalesce((l.running > 0 OR l.running IS NULL) AND coalesce(l.running, l.every_ns) IS NOT NULL
                                   AND (l.every_ns IS NULL OR l.every_ns > 0 AND l.burst > 0), false);
        is_of_keys := l.scope IN ('key', 'family');
        IF NOT l.name = ANY (locks)
           OR is_of_keys AND keyed_bits <> 0  -- keys of a family, and one with its own limit
           OR NOT (CASE l.scope WHEN 'queue' THEN true WHEN 'task' THEN l.subject = ALL (tasks)
                               WHEN 'tenant' THEN l.subject = ALL (tenants) WHEN 'key' THEN l.subject = ALL (keys)
                               ELSE (SELECT bool_and(starts_with(k, l.subject)) FROM unnest(keys) AS k) END) THEN
            RETURN;
        END IF;
        bits := 0;
        others := CASE WHEN l.scope = 'family' THEN 1 ELSE asked END;
        IF l.running IS NOT NULL THEN
            bits := CASE l.scope WHEN 'queue' THEN 1 WHEN 'task' THEN 2 WHEN 'tenant' THEN 4 ELSE 8 END;
            n := CASE WHEN is_of_keys THEN cardinality(keys) ELSE cardinality(places) END;
            room := l.running - CASE bits
                WHEN 1 THEN (SELECT count(*) FROM (
                    SELECT FROM rota.running AS x WHERE x.queue = l.subject AND x.ruled & 1 <> 0 LIMIT l.running) AS c)
                WHEN 2 THEN (SELECT count(*) FROM (
                    SELECT FROM rota.running AS x WHERE x.task = l.subject AND x.ruled & 2 <> 0 LIMIT l.running) AS c)
                WHEN 4 THEN (SELECT count(*) FROM (
                    SELECT FROM rota.running AS x WHERE x.tenant = l.subject AND x.ruled & 4 <> 0 LIMIT l.running) AS c)
                ELSE (SELECT count(*) FROM (  -- as if all had the same key
                    SELECT FROM rota.running AS x WHERE x.concurrency_key = ANY (keys) AND x.ruled & 8 <> 0 LIMIT l.running) AS c)
                END;
            IF l.scope = 'family' AND n + others > room THEN
                n := 0;
                room := l.running - (
                    SELECT max(u.n + coalesce(b.n, 0))
                      FROM (SELECT k AS key, count(*) AS n FROM unnest(keys) AS k GROUP BY 1) AS u
                      LEFT JOIN (SELECT x.concurrency_key AS key, count(*) AS n FROM rota.running AS x
                                  WHERE x.concurrency_key = ANY (keys) AND x.ruled & 8 <> 0 GROUP BY 1) AS b ON b.key = u.key);
            END IF;
            IF n > room THEN
                RETURN;
            END IF;
            is_ample := is_ample AND n + others <= room;
        END IF;
        IF l.every_ns IS NOT NULL THEN
            IF more > 0 AND is_of_keys AND (l.scope = 'family' OR cardinality(keys) < cardinality(places)) THEN
                RETURN;  -- which of them take more is not known here
            END IF;
            bits := bits | 16;
            n := CASE WHEN is_of_keys THEN cardinality(keys) ELSE cardinality(places) END + more;
            IF l.scope = 'family' THEN  -- as if all had the same key
                l.full_ns := coalesce((SELECT max(b.full_ns) FROM rota.buckets AS b WHERE b.concurrency_key = ANY (keys)), 0);
            END IF;
            others := greatest(others, (499999999 + l.every_ns) / l.every_ns);
            room := {tokens of l};
            IF l.scope = 'family' AND n + others > room THEN
                n := (SELECT max(c.n) FROM (SELECT count(*) AS n FROM unnest(keys) AS k GROUP BY k) AS c);
            END IF;
            IF n > room THEN
                RETURN;
            END IF;
            is_ample := is_ample AND n + others <= room;
            rated := rated || l;
        END IF;
        IF is_of_keys THEN
            keyed_bits := bits;
        ELSE
            common_bits := common_bits | bits;
        END IF;
    END LOOP;
    IF NOT is_ample AND free < cardinality(places) THEN
        RETURN;  -- nothing is claimed ahead of others
    END IF;
    IF cardinality(rated) > 0 THEN
        IF (SELECT count(*) FROM (SELECT FROM rota.queued WHERE ctid = ANY (places) AND due FOR UPDATE SKIP LOCKED) AS c)
               < cardinality(places) THEN
            RETURN;
        END IF;
        FOREACH l IN ARRAY rated LOOP
            IF l.scope = 'family' THEN
                INSERT INTO rota.buckets AS b (concurrency_key, full_ns)
                SELECT k, now_ns + l.every_ns * count(*) FROM unnest(keys) AS k GROUP BY 1
                ON CONFLICT (concurrency_key) DO UPDATE SET full_ns = greatest(b.full_ns, now_ns) + (excluded.full_ns - now_ns);
            ELSE
                UPDATE rota.limits AS f SET full_ns = greatest(f.full_ns, now_ns)
                       + f.every_ns * (CASE l.scope WHEN 'key' THEN cardinality(keys) ELSE cardinality(places) END + more)
                 WHERE f.name = l.name;
            END IF;
        END LOOP;
    END IF;
    common := common_bits; keyed := keyed_bits;
END
$$;
