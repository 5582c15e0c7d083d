-- Segments of due jobs. While any transaction holds an old snapshot, PostgreSQL keeps the index entries of
-- jobs long gone, and a claim that starts at the front of the index passes all of them. So due jobs lie in
-- segments, the first column of that index. As a rule there is one. When claims find too many dead entries in
-- it, and a snapshot is the cause, a new one takes all further jobs. The older ones are emptied, and what
-- lies in them is never read again.
-- A job may lie in any segment that claims look into: its place in the queue does not depend on it.

-- Whether a snapshot older than the transaction keeps dead rows from being removed.
CREATE FUNCTION rota.is_held_since(noted xid8) RETURNS boolean
LANGUAGE sql STABLE
SET search_path = rota, pg_temp
AS $$
    -- a transaction to come is of another server, or of the time before a restore
    SELECT CASE WHEN noted < pg_snapshot_xmax(pg_current_snapshot()) THEN greatest(
        (SELECT max(greatest(age(a.backend_xmin), age(a.backend_xid))) FROM pg_stat_activity AS a
          WHERE a.pid <> pg_backend_pid() AND (a.datname = current_database() OR a.datname IS NULL)
            AND a.usesysid IS NOT NULL),  -- not autovacuum: it holds nothing back
        (SELECT max(age(r.xmin)) FROM pg_replication_slots AS r),
        (SELECT max(age(p.transaction)) FROM pg_prepared_xacts AS p WHERE p.database = current_database())
    ) > age(noted::xid) END
$$;

-- The transactions that write to rota.queued now: each may have begun when another segment was the newest.
CREATE FUNCTION rota.writers() RETURNS text[]
LANGUAGE sql VOLATILE
SET search_path = rota, pg_temp
AS $$
    SELECT ARRAY(SELECT DISTINCT l.virtualtransaction FROM pg_locks AS l
                  WHERE l.locktype = 'relation' AND l.relation = 'rota.queued'::regclass
                    AND l.database = (SELECT d.oid FROM pg_database AS d WHERE d.datname = current_database())
                    AND l.mode = 'RowExclusiveLock' AND l.pid IS DISTINCT FROM pg_backend_pid())
$$;

-- The first jobs of the lanes that lie in several segments, in order, without locks: from each an even share of
-- what is wanted. ranks, run_ats, ids: the place up to which a lane has been read. strands to strand_ids: each
-- queue in each segment, and the place before which nothing is left there.
CREATE FUNCTION rota.merge_segments(
    lanes text[], ranks integer[], run_ats timestamptz[], ids uuid[], strands text[], segments integer[],
    strand_ranks integer[], strand_ats timestamptz[], strand_ids uuid[], tasks text[], exclude_tenants text[],
    top bigint, wanted integer)
RETURNS TABLE (ord bigint, place tid, rank integer, run_at timestamptz, id uuid)
LANGUAGE plpgsql
SET search_path = rota, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    sharing CONSTANT integer := cardinality(lanes);
BEGIN
    RETURN QUERY
    SELECT m.ord, m.place, m.rank, m.run_at, m.id
      FROM (SELECT c.*, row_number() OVER (PARTITION BY c.ord ORDER BY c.rank, c.run_at, c.id) AS nth
              FROM (SELECT b.ord, b.share, f.*
                      FROM (SELECT l.ord, l.queue, s.segment, (l.rank, l.run_at, l.id) > (s.rank, s.run_at, s.id) AS further,
                                   l.rank, l.run_at, l.id, s.rank AS from_rank, s.run_at AS from_at, s.id AS from_id,
                                   wanted / sharing + (l.ord <= wanted % sharing)::integer AS share
                              FROM unnest(lanes, ranks, run_ats, ids) WITH ORDINALITY AS l(queue, rank, run_at, id, ord)
                              JOIN unnest(strands, segments, strand_ranks, strand_ats, strand_ids)
                                   AS s(queue, segment, rank, run_at, id) ON s.queue = l.queue) AS b, LATERAL (
                           SELECT q.ctid AS place, q.rank, q.run_at, q.id FROM rota.queued AS q
                            WHERE q.due AND q.segment = b.segment AND q.queue = b.queue AND q.rank < top
                              AND (q.rank, q.run_at, q.id) > (CASE WHEN b.further THEN b.rank ELSE b.from_rank END,
                                                              CASE WHEN b.further THEN b.run_at ELSE b.from_at END,
                                                              CASE WHEN b.further THEN b.id ELSE b.from_id END)
                              AND (tasks IS NULL OR q.task = ANY (tasks))
                              AND (exclude_tenants IS NULL OR NOT q.tenant = ANY (exclude_tenants))
                            ORDER BY q.rank, q.run_at, q.id LIMIT b.share) AS f) AS c) AS m
     WHERE m.nth <= m.share
     ORDER BY m.ord, m.nth;
END
$$;

-- Where claims look for jobs of the queues: in each segment, the place after which.
CREATE FUNCTION rota.list_strands(queues text[])
RETURNS TABLE (queue text, segment integer, rank integer, run_at timestamptz, id uuid)
LANGUAGE plpgsql
SET search_path = rota, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    s rota.segments%ROWTYPE;
BEGIN
    SELECT * INTO s FROM rota.segments ORDER BY version DESC LIMIT 1;
    RETURN QUERY
        SELECT l.queue, n.segment, -2147483648, '-infinity'::timestamptz, 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid
          FROM unnest(queues) AS l(queue), unnest(s.newest || s.closed) AS n(segment)
        UNION ALL
        SELECT o.* FROM unnest(s.old_queue, s.old_segment, s.old_rank, s.old_at, s.old_id)
                        AS o(queue, segment, rank, run_at, id)
          JOIN unnest(queues) AS l(queue) ON l.queue = o.queue;  -- not ANY: there may be thousands of either
END
$$;

-- Where the jobs of the segments begin, by queue: the places just before them. queues to ids: where they began
-- when last looked at; NULL for queues: any, from the front. Jobs no more than most are moved to the newest segment
-- instead. So are the first ones if they have not moved on since, and pushing says that dead entries lie behind them.
CREATE FUNCTION rota.look_into(
    segments integer[], queues text[], ranks integer[], run_ats timestamptz[], ids uuid[],
    newest integer, most integer, pushing boolean,
    OUT old_segment integer[], OUT old_queue text[], OUT old_rank integer[], OUT old_at timestamptz[], OUT old_id uuid[])
LANGUAGE plpgsql
SET search_path = rota, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    first CONSTANT integer := -2147483648;
    last_id CONSTANT uuid := 'ffffffff-ffff-ffff-ffff-ffffffffffff';
    found tid[];
    names text[];
    moved integer := 0;
BEGIN
    IF queues IS NULL THEN
        SELECT array_agg(s.segment), array_agg(l.queue) INTO segments, queues
          FROM unnest(segments) AS s(segment), LATERAL unnest(rota.lanes(NULL, '{}', s.segment)) AS l(queue);
        IF queues IS NULL THEN
            RETURN;
        END IF;
        ranks := array_fill(first, ARRAY[cardinality(segments)]);
        run_ats := array_fill('-infinity'::timestamptz, ARRAY[cardinality(segments)]);
        ids := array_fill(last_id, ARRAY[cardinality(segments)]);
    END IF;
    found := ARRAY(
        SELECT f.place FROM unnest(segments, queues, ranks, run_ats, ids) AS s(segment, queue, rank, run_at, id), LATERAL (
            SELECT q.ctid AS place FROM rota.queued AS q
             WHERE q.due AND q.segment = s.segment AND q.queue = s.queue
               AND (q.rank, q.run_at, q.id) > (s.rank, s.run_at, s.id)
             ORDER BY q.rank, q.run_at, q.id LIMIT most + 1) AS f
         LIMIT most + 1);
    LOOP
        SELECT array_agg(s.segment), array_agg(s.queue), array_agg(f.rank),
               array_agg(CASE WHEN f.run_at > '4714-11-24 BC'::timestamptz + interval '1 day'
                              THEN f.run_at - interval '1 microsecond' ELSE '-infinity' END), array_agg(last_id)
          INTO old_segment, old_queue, old_rank, old_at, old_id
          FROM unnest(segments, queues, ranks, run_ats, ids) AS s(segment, queue, rank, run_at, id), LATERAL (
               SELECT q.rank, q.run_at FROM rota.queued AS q
                WHERE q.due AND q.segment = s.segment AND q.queue = s.queue
                  AND (q.rank, q.run_at, q.id) > (s.rank, s.run_at, s.id)
                ORDER BY q.rank, q.run_at, q.id LIMIT 1) AS f;
        EXIT WHEN moved > 0 OR old_queue IS NULL;
        EXIT WHEN cardinality(found) > most AND NOT (pushing AND (old_queue, old_rank, old_at) = (queues, ranks, run_ats));
        WITH gone AS (
            UPDATE rota.queued SET segment = newest WHERE ctid = ANY (ARRAY(
                SELECT q.ctid FROM rota.queued AS q WHERE q.due AND q.segment = ANY (segments) AND q.ctid = ANY (found)
                   FOR UPDATE SKIP LOCKED)) RETURNING queue)
        SELECT array_agg(DISTINCT queue), count(*) INTO names, moved FROM gone;
        EXIT WHEN moved = 0;  -- others have locked them
        -- a claim that met them locked may have gone without
        PERFORM pg_notify('rota_wake', rota.hint_of(name)) FROM unnest(names) AS name;
    END LOOP;
END
$$;

-- Bring the list of segments up to date after a claim. passed, passed_later: dead entries that it met among due
-- jobs and among later ones, beside those it made itself. patient: wait for another session that is at it.
-- Whether jobs may have come to light.
CREATE FUNCTION rota.tidy(passed bigint, passed_later bigint, patient boolean) RETURNS boolean
LANGUAGE plpgsql
SET search_path = rota, pg_temp
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_mergejoin = off SET enable_nestloop = off
SET enable_sort = off SET enable_indexonlyscan = off SET jit = off SET plan_cache_mode = force_generic_plan
AS $$
#variable_conflict use_column
DECLARE
    few CONSTANT integer := 200;  -- jobs of an older segment that are moved rather than left there
    most CONSTANT integer := 16;  -- older segments
    most_late CONSTANT integer := 200;  -- segments looked into again, in one call
    most_read CONSTANT integer := 20000;  -- dead entries among them
    s rota.segments%ROWTYPE;
    before rota.segments%ROWTYPE;
    older integer[];
    holders text[];
    looked integer[] := '{}';  -- older segments that are read from the front
    others integer[];
    late integer := 0;
    met bigint;
    one integer;
    seen record;
    pushing CONSTANT boolean := passed > {many dead};
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RETURN false;  -- what was committed meanwhile would be overlooked
    END IF;
    IF greatest(passed, passed_later) <= {many dead} THEN  -- first without a lock: mostly there is nothing to do
        SELECT * INTO s FROM rota.segments ORDER BY version DESC LIMIT 1;
        IF s.closed = '{}' AND s.late_from IS NULL AND (patient OR s.old_segment = '{}')
           AND s.awaited <@ rota.writers() THEN
            RETURN false;
        END IF;
    END IF;
    IF patient THEN
        SELECT * INTO s FROM rota.segments ORDER BY version DESC LIMIT 1 FOR UPDATE;
    ELSE
        SELECT * INTO s FROM rota.segments ORDER BY version DESC LIMIT 1 FOR UPDATE SKIP LOCKED;
    END IF;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    before := s;
    older := ARRAY(SELECT DISTINCT unnest(s.closed || s.old_segment));
    IF older <> '{}' OR s.awaited <> '{}' OR s.late_from IS NOT NULL THEN
        holders := rota.writers();
        SELECT min(w.since) INTO one FROM unnest(s.awaited_from, s.awaited) AS w(since, holder)
         WHERE NOT w.holder = ANY (holders);
        IF one IS NOT NULL THEN
            s.late_from := least(s.late_from, one);
            s.late_to := s.newest - 1;
            SELECT coalesce(array_agg(w.since), '{}'), coalesce(array_agg(w.holder), '{}')
              INTO s.awaited_from, s.awaited
              FROM unnest(s.awaited_from, s.awaited) AS w(since, holder) WHERE w.holder = ANY (holders);
        END IF;
        IF s.closed <> '{}' AND s.opened_by IS DISTINCT FROM pg_current_xact_id() THEN
            looked := s.closed;
            SELECT min(c) INTO one FROM unnest(s.closed) AS c;
            holders := ARRAY(SELECT h FROM unnest(holders) AS h WHERE NOT h = ANY (s.awaited));
            s.awaited := s.awaited || holders;
            s.awaited_from := s.awaited_from || array_fill(one, ARRAY[cardinality(holders)]);
            s.closed := '{}';
        END IF;
        others := ARRAY(SELECT DISTINCT o FROM unnest(looked || s.old_segment) AS o);
        met := {dead due};
        LOOP
            IF others <> '{}' THEN
                one := others[1];
                others := others[2:];
            ELSIF s.late_from <= s.late_to AND late < most_late AND {dead due} - met < most_read THEN
                one := s.late_from;
                s.late_from := one + 1;
                late := late + 1;
                CONTINUE WHEN one = ANY (s.closed || looked);
                looked := looked || one;
            ELSE
                EXIT;  -- the rest is for the next call
            END IF;
            SELECT l.* INTO seen
              FROM (SELECT array_agg(o.segment) AS segments, array_agg(o.queue) AS queues, array_agg(o.rank) AS ranks,
                           array_agg(o.run_at) AS run_ats, array_agg(o.id) AS ids
                      FROM unnest(s.old_segment, s.old_queue, s.old_rank, s.old_at, s.old_id)
                           AS o(segment, queue, rank, run_at, id)
                     WHERE o.segment = one AND NOT one = ANY (looked)) AS a,
                   LATERAL rota.look_into(coalesce(a.segments, ARRAY[one]), a.queues, a.ranks, a.run_ats, a.ids, s.newest,
                                          few * greatest(cardinality(older), 1), pushing) AS l;
            CONTINUE WHEN seen.old_queue IS NULL AND NOT one = ANY (s.old_segment);
            SELECT coalesce(array_agg(o.segment), '{}'), coalesce(array_agg(o.queue), '{}'),
                   coalesce(array_agg(o.rank), '{}'), coalesce(array_agg(o.run_at), '{}'), coalesce(array_agg(o.id), '{}')
              INTO s.old_segment, s.old_queue, s.old_rank, s.old_at, s.old_id
              FROM (SELECT * FROM unnest(s.old_segment, s.old_queue, s.old_rank, s.old_at, s.old_id)
                           AS o(segment, queue, rank, run_at, id) WHERE o.segment <> one
                    UNION ALL
                    SELECT * FROM unnest(seen.old_segment, seen.old_queue, seen.old_rank, seen.old_at, seen.old_id)) AS o;
        END LOOP;
        IF s.late_from > s.late_to THEN
            s.late_from := NULL;
            s.late_to := NULL;
        END IF;
        passed := {dead due};
        PERFORM rota.lanes(NULL, '{}', s.newest);
        passed := {dead due} - passed;
    END IF;
    IF greatest(passed, passed_later) > {many dead} AND NOT (
           s.noted_at BETWEEN clock_timestamp() - interval '0.5 s' AND clock_timestamp() AND s.noted IS NOT NULL) THEN
        IF rota.is_held_since(s.noted) THEN
            IF passed > {many dead} AND cardinality(older) < most THEN
                s.closed := s.closed || s.newest;
                s.newest := s.newest + 1;
                s.opened_by := pg_current_xact_id();
            END IF;
            IF passed_later > {many dead} THEN
                -- a transaction that writes now may have stored a job that was due later when it began
                s.later_from := least(clock_timestamp() - interval '10 s', (
                    SELECT min(a.xact_start) - interval '10 s' FROM pg_stat_activity AS a JOIN pg_locks AS l ON l.pid = a.pid
                     WHERE l.relation = 'rota.queued'::regclass AND l.mode = 'RowExclusiveLock'
                       AND a.pid <> pg_backend_pid()), (
                    SELECT q.run_at FROM rota.queued AS q WHERE NOT q.due AND q.run_at >= s.later_from
                     ORDER BY q.run_at LIMIT 1));
            END IF;
        ELSE  -- look again in a while: entries that no one needs are then no longer counted
            s.noted := pg_current_xact_id();
            s.noted_at := clock_timestamp();
        END IF;
    END IF;
    IF s IS DISTINCT FROM before THEN
        UPDATE rota.segments SET
            (version, newest, opened_by, closed, old_segment, old_queue, old_rank, old_at, old_id, awaited,
             awaited_from, late_from, late_to, later_from, noted, noted_at) =
            (s.version + 1, s.newest, s.opened_by, s.closed, s.old_segment, s.old_queue, s.old_rank, s.old_at, s.old_id,
             s.awaited, s.awaited_from, s.late_from, s.late_to, s.later_from, s.noted, s.noted_at)
         WHERE version = s.version;
    END IF;
    RETURN looked <> '{}';
END
$$;

-- Whether the session is to call rota.check_segments: one of all in a minute. To be committed before, so that a
-- check that fails is not made again at once.
CREATE FUNCTION rota.is_check_due() RETURNS boolean
LANGUAGE plpgsql
SET search_path = rota, pg_temp
SET enable_seqscan = off
AS $$
DECLARE
    last timestamptz;
BEGIN
    SELECT s.checked_at INTO last FROM rota.segments AS s ORDER BY s.version DESC LIMIT 1;
    IF last BETWEEN clock_timestamp() - interval '1 minute' AND clock_timestamp() THEN
        RETURN false;
    END IF;
    UPDATE rota.segments SET version = version + 1, checked_at = clock_timestamp()
     WHERE version = (SELECT s.version FROM rota.segments AS s ORDER BY s.version DESC LIMIT 1 FOR UPDATE SKIP LOCKED)
       AND checked_at IS NOT DISTINCT FROM last;
    RETURN FOUND;
END
$$;

-- The segments from one to another that hold due jobs which the list does not name.
CREATE FUNCTION rota.unlisted(since integer, until integer) RETURNS integer[]
LANGUAGE plpgsql
SET search_path = rota, pg_temp
AS $$
DECLARE
    s rota.segments%ROWTYPE;
BEGIN
    SELECT * INTO s FROM rota.segments ORDER BY version DESC LIMIT 1;
    RETURN ARRAY(
        WITH RECURSIVE lane(segment, queue, rank, run_at) AS (  -- the first job of each
            (SELECT q.segment, q.queue, q.rank, q.run_at FROM rota.queued AS q
              WHERE q.due AND q.segment >= since AND q.segment <= until
              ORDER BY q.segment, q.queue, q.rank, q.run_at, q.id LIMIT 1)
            UNION ALL
            SELECT beyond.* FROM lane, LATERAL (
                SELECT q.segment, q.queue, q.rank, q.run_at FROM rota.queued AS q
                 WHERE q.due AND (q.segment, q.queue) > (lane.segment, lane.queue) AND q.segment <= until
                 ORDER BY q.segment, q.queue, q.rank, q.run_at, q.id LIMIT 1) AS beyond)
        SELECT DISTINCT l.segment FROM lane AS l
         WHERE l.segment <> s.newest AND NOT l.segment = ANY (s.closed)
           AND NOT EXISTS (
               SELECT FROM unnest(s.old_segment, s.old_queue, s.old_rank, s.old_at) AS o(segment, queue, rank, run_at)
                WHERE o.segment = l.segment AND o.queue = l.queue AND (l.rank, l.run_at) > (o.rank, o.run_at)));
END
$$;

-- What the list of segments has missed, which should be nothing: a job stored with an old view of it, by a caller
-- whose whole transaction has one snapshot, or a row that was restored or written by hand. Reads entries of
-- jobs that are gone, hence once a minute, by one session, and some of them at a time.
CREATE FUNCTION rota.check_segments() RETURNS void
LANGUAGE plpgsql
SET search_path = rota, pg_temp
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_mergejoin = off
SET enable_sort = off SET enable_indexonlyscan = off SET jit = off SET plan_cache_mode = force_generic_plan
AS $$
#variable_conflict use_column
DECLARE
    most CONSTANT integer := 2000;  -- segments
    most_read CONSTANT integer := 1000000;  -- dead entries
    last CONSTANT integer := 2147483647;
    s rota.segments%ROWTYPE;
    strays integer[] := '{}';
    is_held boolean;
    later timestamptz;
    next integer;
    met CONSTANT bigint := {dead due};
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' OR NOT pg_try_advisory_xact_lock({strays lock}) THEN
        RETURN;
    END IF;
    SELECT * INTO s FROM rota.segments ORDER BY version DESC LIMIT 1;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    is_held := coalesce(rota.is_held_since(s.strays_xid), false);
    IF is_held THEN
        next := s.strays_next;
        WHILE next < s.newest AND next - s.strays_next < most AND {dead due} - met < most_read LOOP
            strays := strays || rota.unlisted(next, next);
            next := next + 1;
        END LOOP;
        strays := strays || rota.unlisted(s.newest + 1, last);
    ELSE  -- the entries of jobs that are gone go as they are read
        strays := rota.unlisted(0, last);
    END IF;
    SELECT run_at INTO later FROM rota.queued WHERE NOT due ORDER BY run_at LIMIT 1;
    PERFORM FROM rota.segments ORDER BY version DESC LIMIT 1 FOR UPDATE;
    UPDATE rota.segments AS g SET
        version = g.version + 1, later_from = least(g.later_from, later),
        closed = ARRAY(SELECT unnest(g.closed || strays) EXCEPT SELECT g.newest),
        strays_next = CASE WHEN NOT is_held THEN g.strays_newest WHEN next < s.newest THEN next ELSE g.strays_from END,
        strays_from = CASE WHEN is_held THEN g.strays_from ELSE g.strays_newest END,
        strays_newest = CASE WHEN is_held THEN g.strays_newest ELSE s.newest END,
        strays_xid = CASE WHEN is_held THEN g.strays_xid ELSE pg_current_xact_id() END
     WHERE g.version = (SELECT max(m.version) FROM rota.segments AS m);
    DELETE FROM rota.segments WHERE version < (SELECT max(m.version) FROM rota.segments AS m);
    PERFORM rota.check_lanes();
END
$$;

-- What claims do themselves, unless each is cancelled before its end because it meets too many dead entries.
CREATE FUNCTION rota.tidy_alone() RETURNS void
LANGUAGE plpgsql
SET search_path = rota, pg_temp
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_mergejoin = off SET enable_nestloop = off
SET enable_sort = off SET enable_indexonlyscan = off SET jit = off SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
    met bigint := {dead due};
    met_later bigint := {dead later};
BEGIN
    PERFORM rota.lanes(NULL, '{}', {newest segment});
    PERFORM FROM rota.queued WHERE NOT due ORDER BY run_at LIMIT 1;
    PERFORM rota.tidy({dead due} - met, {dead later} - met_later, true);
END
$$;
