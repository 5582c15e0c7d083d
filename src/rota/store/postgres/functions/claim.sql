-- Claims: which jobs a worker gets. How queues share a claim is decided in core/jobs/admission.py; a test
-- holds rota.claim to it.

-- Jobs whose time has come join the due ones; when the next will. Nothing to do costs one probe.
-- since: no job has an earlier time, as the list of segments says.
CREATE FUNCTION rota.promote(since timestamptz, now timestamptz) RETURNS timestamptz
LANGUAGE plpgsql
SET search_path = rota, pg_temp
AS $$
DECLARE
    soonest timestamptz;
BEGIN
    SELECT run_at INTO soonest FROM rota.queued WHERE NOT due AND run_at >= since ORDER BY run_at LIMIT 1;
    IF soonest <= now THEN
        UPDATE rota.queued SET due = true, segment = {newest segment}, lane = {line lane} WHERE ctid = ANY (ARRAY(
            SELECT ctid FROM rota.queued WHERE NOT due AND run_at >= since AND run_at <= now ORDER BY run_at LIMIT 1000
               FOR UPDATE SKIP LOCKED));
        SELECT run_at INTO soonest FROM rota.queued WHERE NOT due AND run_at >= since ORDER BY run_at LIMIT 1;
    END IF;
    RETURN soonest;
END
$$;

-- The queues to claim from. Without a list: those with due jobs in the segment, one index probe each.
CREATE FUNCTION rota.lanes(queues text[], exclude text[], segment integer) RETURNS text[]
LANGUAGE plpgsql STABLE
SET search_path = rota, pg_temp
AS $$
BEGIN
    IF queues IS NOT NULL THEN
        RETURN ARRAY(SELECT DISTINCT q FROM unnest(queues) AS q WHERE NOT q = ANY (exclude));
    END IF;
    RETURN ARRAY(
        WITH RECURSIVE lane(queue) AS (
            (SELECT q.queue FROM rota.queued AS q WHERE q.due AND q.segment = lanes.segment ORDER BY q.queue LIMIT 1)
            UNION ALL
            SELECT (SELECT q.queue FROM rota.queued AS q
                     WHERE q.due AND q.segment = lanes.segment AND q.queue > lane.queue ORDER BY q.queue LIMIT 1)
              FROM lane WHERE lane.queue IS NOT NULL)
        SELECT queue FROM lane WHERE queue IS NOT NULL AND NOT queue = ANY (exclude));
END
$$;

-- As rota.lanes, with those that have due jobs in older segments.
CREATE FUNCTION rota.list_queues(queues text[], exclude text[], segment integer) RETURNS text[]
LANGUAGE plpgsql STABLE
SET search_path = rota, pg_temp
AS $$
DECLARE
    lane CONSTANT text[] := rota.lanes(queues, exclude, segment);
BEGIN
    IF queues IS NOT NULL THEN
        RETURN lane;
    END IF;
    RETURN ARRAY(
        SELECT q FROM unnest(lane) AS q
        UNION
        SELECT q FROM (SELECT * FROM rota.segments ORDER BY version DESC LIMIT 1) AS s, LATERAL (
            SELECT unnest(rota.lanes(NULL, '{}', c)) AS q FROM unnest(s.closed) AS c
            UNION ALL SELECT unnest(s.old_queue)) AS o
         WHERE NOT q = ANY (exclude));
END
$$;

-- Claim at most lim jobs. The first row says when the next job will be due, and in run_at what the time is
-- now; each other one is a job.
-- queues, tasks, exclude_tenants: NULL for any, any, none.
-- since: where the caller's last claim ended in each queue, as [{queue, rank, run_at, id}]. A claim that
-- starts there does not read the entries of jobs long gone at the front of the index. More urgent jobs are
-- still seen; and if it does not find enough, the claim starts from the front as well.
-- free, state, recent, freed: see rota.claim_fairly. As soon as there are tenants, rules or held jobs, it does the work
-- unless the next jobs can be taken in order.
CREATE FUNCTION rota.claim(
    worker text, lim integer, lease_s double precision, queues text[], exclude text[], tasks text[],
    exclude_tenants text[], since json, free integer, state json, recent json, freed text[], now timestamptz)
RETURNS TABLE (
    next_due_at timestamptz, run_at text, created_at text, payload json,
    {claimed types})
LANGUAGE plpgsql
SET search_path = rota, pg_temp
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_mergejoin = off SET enable_nestloop = off
SET enable_sort = off SET enable_indexonlyscan = off SET jit = off SET plan_cache_mode = force_generic_plan
AS $$
#variable_conflict use_column
DECLARE
    first CONSTANT integer := -2147483648;
    last_id CONSTANT uuid := 'ffffffff-ffff-ffff-ffff-ffffffffffff';
    met CONSTANT bigint := {dead due};
    met_later CONSTANT bigint := {dead later};
    met_live CONSTANT bigint := {live due};
    s rota.segments;
    is_fair boolean;
    version bigint;  -- of the list of segments
    known bigint;
    newest integer;
    several boolean;  -- whether older segments still hold jobs
    awaiting boolean;  -- whether an older segment may still receive some
    later_from timestamptz;
    -- each queue in each segment: the places (rank, run_at, id) after which to look
    strand text[];
    strand_segment integer[];
    strand_rank integer[];
    strand_at timestamptz[];
    strand_id uuid[];
    line text[];  -- queues that may still hold a job to claim, the most urgent first
    head integer[];  -- the best rank of each
    -- the place in each up to which it has been read: (rank, run_at, id)
    seen_rank integer[];
    seen_at timestamptz[];
    seen_id uuid[];
    sharing integer;  -- how many lanes share the best rank
    top bigint;  -- claim ranks before this one
    places tid[];
    givers bigint[];  -- the lane of each place
    given_rank integer[];
    given_at timestamptz[];
    given_id uuid[];
    wanted integer := lim;
    asked integer;  -- what was wanted in this round
    looks integer := 0;  -- from the front
    passed bigint;
    chance CONSTANT double precision := random();
    chosen record;
    limited text[];  -- queues
    taken integer;
    lease_until CONSTANT timestamptz := now + lease_s * interval '1 second';
BEGIN
    -- A session that sets a rule waits for the claims under way, and those that follow know it.
    PERFORM pg_advisory_xact_lock_shared({rules lock});
    SELECT * INTO s FROM rota.segments ORDER BY version DESC LIMIT 1;
    IF NOT FOUND THEN  -- emptied by hand; rota.check_segments adds what it does not name
        INSERT INTO rota.segments (version, newest, fair, many, rules) VALUES (1, 0, true, true, 255) ON CONFLICT DO NOTHING;
        SELECT * INTO s FROM rota.segments ORDER BY version DESC LIMIT 1;
    END IF;
    version := s.version; newest := s.newest; later_from := s.later_from; is_fair := s.fair;
    several := s.closed <> '{}' OR s.old_segment <> '{}';
    awaiting := s.awaited <> '{}' OR s.late_from IS NOT NULL;
    next_due_at := rota.promote(later_from, now);
    IF is_fair AND wanted > 0 AND coalesce(state->>'locks', '[]') = '[]' THEN
        -- limits of other queues alone: those are left out, and claims are plain
        limited := rota.idle_limited_queues(s, queues, exclude, since);
        is_fair := limited IS NULL;
        exclude := exclude || limited;
    END IF;
    IF is_fair AND wanted > 0 THEN
        SELECT * INTO chosen FROM rota.pick_in_order(
            lim, queues, exclude, tasks, exclude_tenants, since, free, state, freed, s,
            CASE WHEN lim >= {fair claim} AND chance < 0.25 THEN lim / 16 ELSE 0 END, now);
        IF chosen.places IS NULL THEN
            RETURN QUERY
            SELECT * FROM rota.claim_fairly(worker, lim, lease_until, queues, exclude, tasks, exclude_tenants, since, free,
                                            state, recent, freed, lim >= {fair claim} AND chance < 0.03125, chosen.may_wait, next_due_at, now);
            RETURN;
        END IF;
        RETURN QUERY
        WITH picked AS (
            DELETE FROM rota.queued WHERE ctid = ANY (ARRAY(
                SELECT ctid FROM rota.queued WHERE ctid = ANY (chosen.places) AND due FOR UPDATE SKIP LOCKED)) RETURNING *
        )
        INSERT INTO rota.running AS r (
            {carried except lease_token, attempt, started_at},
            lease_token, attempt, started_at, worker, lease_until, cancel_requested, ruled)
        SELECT {carried of p except lease_token, attempt, started_at},
               p.lease_token + 1, p.attempt + 1, now, claim.worker, lease_until, p.cancel_requested,
               nullif(chosen.common | CASE WHEN p.concurrency_key IS NULL THEN 0 ELSE chosen.keyed END, 0)
          FROM picked AS p
        RETURNING NULL::timestamptz, r.run_at::text, r.created_at::text,
                  coalesce(r.payload, (SELECT p.body FROM rota.payloads AS p WHERE p.job = r.id)),
                  {claimed of r};
        GET DIAGNOSTICS taken = ROW_COUNT;
        next_due_at := least(next_due_at, chosen.again_at);
        IF taken = lim THEN
            created_at := chosen.place;
        ELSIF taken < cardinality(chosen.places) THEN
            next_due_at := now;  -- another session has the others, and more may be due
        END IF;
        IF {live due} - met_live - 2 * lim > {many passed} AND (tasks IS NOT NULL OR exclude_tenants IS NOT NULL) THEN
            PERFORM rota.hold(rota.list_queues(queues, exclude, newest), tasks, exclude_tenants, lim);
        END IF;
        passed := {dead due} - met - 2 * lim;
        IF greatest(passed, {dead later} - met_later) > {many dead} OR awaiting AND random() < 0.05 THEN
            PERFORM rota.tidy(passed, {dead later} - met_later, false);
        END IF;
        run_at := now::text;
        payload := coalesce(chosen.said, state, '{}');
        cancel_requested := chosen.is_ample;
        id := NULL;
        RETURN NEXT;
        RETURN;
    END IF;
    run_at := now::text;
    RETURN NEXT;
    IF wanted > 0 AND since IS NOT NULL AND NOT several THEN  -- more urgent ones could lie in any segment
        SELECT array_agg(c.queue), array_agg(CASE WHEN u.urgent THEN first ELSE c.rank END),
               array_agg(c.run_at), array_agg(c.id)
          INTO line, seen_rank, seen_at, seen_id
          FROM json_to_recordset(since) AS c(queue text, rank integer, run_at timestamptz, id uuid), LATERAL (
               SELECT EXISTS (SELECT FROM rota.queued AS q
                               WHERE q.due AND q.segment = newest AND q.queue = c.queue AND q.rank < c.rank) AS urgent
               ) AS u;
    END IF;
    WHILE wanted > 0 LOOP
        IF line IS NULL THEN
            IF looks > 0 THEN
                -- a session that moved jobs to another segment meanwhile, or committed one into an older segment
                IF awaiting AND looks = 1 THEN
                    PERFORM rota.tidy(0, 0, true);
                END IF;
                known := version;
                SELECT l.version, l.newest, l.closed <> '{}' OR l.old_segment <> '{}',
                       l.awaited <> '{}' OR l.late_from IS NOT NULL, l.later_from
                  INTO version, newest, several, awaiting, later_from
                  FROM rota.segments AS l ORDER BY l.version DESC LIMIT 1;
                EXIT WHEN version = known OR looks > 3;
            END IF;
            looks := looks + 1;
            line := CASE WHEN several THEN rota.list_queues(queues, exclude, newest)
                         ELSE rota.lanes(queues, exclude, newest) END;
            IF line = '{}' THEN
                line := NULL;
                CONTINUE;
            END IF;
            seen_rank := array_fill(first, ARRAY[cardinality(line)]);
            seen_at := array_fill('-infinity'::timestamptz, ARRAY[cardinality(line)]);
            seen_id := array_fill(last_id, ARRAY[cardinality(line)]);
            strand := NULL;
        END IF;
        IF strand IS NULL AND several THEN
            SELECT array_agg(s.queue), array_agg(s.segment), array_agg(s.rank), array_agg(s.run_at), array_agg(s.id)
              INTO strand, strand_segment, strand_rank, strand_at, strand_id
              FROM rota.list_strands(line) AS s;
        END IF;
        IF cardinality(line) = 1 THEN
            sharing := 1;  -- a single queue: it may contribute all it has
            top := 2147483648;
        ELSE
            IF several THEN
                SELECT array_agg(line[h.ord] ORDER BY h.rank, h.run_at, h.id),
                       array_agg(h.rank ORDER BY h.rank, h.run_at, h.id),
                       array_agg(seen_rank[h.ord] ORDER BY h.rank, h.run_at, h.id),
                       array_agg(seen_at[h.ord] ORDER BY h.rank, h.run_at, h.id),
                       array_agg(seen_id[h.ord] ORDER BY h.rank, h.run_at, h.id)
                  INTO line, head, seen_rank, seen_at, seen_id
                  FROM rota.merge_segments(
                       line, seen_rank, seen_at, seen_id, strand, strand_segment, strand_rank, strand_at, strand_id,
                       tasks, exclude_tenants, 2147483648, cardinality(line)) AS h;
            ELSE
                SELECT array_agg(l.queue ORDER BY h.rank, h.run_at, h.id),
                       array_agg(h.rank ORDER BY h.rank, h.run_at, h.id),
                       array_agg(l.rank ORDER BY h.rank, h.run_at, h.id),
                       array_agg(l.run_at ORDER BY h.rank, h.run_at, h.id),
                       array_agg(l.id ORDER BY h.rank, h.run_at, h.id)
                  INTO line, head, seen_rank, seen_at, seen_id
                  FROM unnest(line, seen_rank, seen_at, seen_id) AS l(queue, rank, run_at, id), LATERAL (
                       SELECT q.rank, q.run_at, q.id FROM rota.queued AS q
                        WHERE q.due AND q.segment = newest AND q.queue = l.queue
                          AND (q.rank, q.run_at, q.id) > (l.rank, l.run_at, l.id)
                          AND (tasks IS NULL OR q.task = ANY (tasks))
                          AND (exclude_tenants IS NULL OR NOT q.tenant = ANY (exclude_tenants))
                        ORDER BY q.rank, q.run_at, q.id LIMIT 1) AS h;
            END IF;
            CONTINUE WHEN line IS NULL;
            SELECT count(*) INTO sharing FROM unnest(head) AS r WHERE r = head[1];
            top := CASE WHEN sharing > 1 THEN head[1]::bigint + 1 ELSE coalesce(head[2], 2147483648) END;
        END IF;
        IF several THEN
            SELECT array_agg(m.place), array_agg(m.ord), array_agg(m.rank), array_agg(m.run_at), array_agg(m.id)
              INTO places, givers, given_rank, given_at, given_id
              FROM rota.merge_segments(
                   line[1:sharing], seen_rank[1:sharing], seen_at[1:sharing], seen_id[1:sharing],
                   strand, strand_segment, strand_rank, strand_at, strand_id, tasks, exclude_tenants, top, wanted) AS m;
            -- only now, so that no more are locked than are taken
            SELECT array_agg(q.place) INTO places FROM (
                SELECT ctid AS place FROM rota.queued WHERE ctid = ANY (places) AND id = ANY (given_id) AND due
                    AND queue = ANY (line[1:sharing]) AND (tasks IS NULL OR task = ANY (tasks))
                    AND (exclude_tenants IS NULL OR NOT tenant = ANY (exclude_tenants))
                   FOR UPDATE SKIP LOCKED) AS q;
        ELSE
            -- from all that share at once: a thousand queues cost one statement, as one does
            SELECT array_agg(p.place), array_agg(p.ord) INTO places, givers
              FROM (SELECT f.place, l.ord
                      FROM unnest(line[1:sharing], seen_rank[1:sharing], seen_at[1:sharing], seen_id[1:sharing])
                           WITH ORDINALITY AS l(queue, rank, run_at, id, ord), LATERAL (
                           SELECT q.ctid AS place FROM rota.queued AS q
                            WHERE q.due AND q.segment = newest AND q.queue = l.queue AND q.rank < top
                              AND (q.rank, q.run_at, q.id) > (l.rank, l.run_at, l.id)
                              AND (tasks IS NULL OR q.task = ANY (tasks))
                              AND (exclude_tenants IS NULL OR NOT q.tenant = ANY (exclude_tenants))
                            ORDER BY q.rank, q.run_at, q.id
                            LIMIT wanted / sharing + (l.ord <= wanted % sharing)::integer  -- an even share
                              FOR UPDATE SKIP LOCKED) AS f) AS p;
        END IF;
        IF places IS NOT NULL THEN
            RETURN QUERY
            WITH picked AS (
                DELETE FROM rota.queued WHERE ctid = ANY (places) RETURNING *
            )
            INSERT INTO rota.running AS r (
                {carried except lease_token, attempt, started_at},
                lease_token, attempt, started_at, worker, lease_until, cancel_requested)
            SELECT {carried of p except lease_token, attempt, started_at},
                   p.lease_token + 1, p.attempt + 1, now, claim.worker, lease_until, p.cancel_requested
              FROM picked AS p
            RETURNING NULL::timestamptz, r.run_at::text, r.created_at::text,
                      coalesce(r.payload, (SELECT p.body FROM rota.payloads AS p WHERE p.job = r.id)),
                      {claimed of r};
        END IF;
        asked := wanted;
        wanted := wanted - coalesce(cardinality(places), 0);
        IF wanted > 0 AND cardinality(line) = 1 AND (NOT several OR coalesce(cardinality(givers), 0) < asked) THEN
            line := NULL;
        ELSIF wanted > 0 THEN
            -- a lane that gave less than its share has nothing more to give up to here
            SELECT array_agg(CASE WHEN NOT kept THEN (top - 1)::integer WHEN several THEN coalesce(last_rank, rank) ELSE rank END
                             ORDER BY ord),
                   array_agg(CASE WHEN NOT kept THEN 'infinity' WHEN several THEN coalesce(last_at, run_at) ELSE run_at END
                             ORDER BY ord),
                   array_agg(CASE WHEN NOT kept THEN last_id WHEN several THEN coalesce(end_id, id) ELSE id END ORDER BY ord)
              INTO seen_rank, seen_at, seen_id
              FROM (SELECT l.*, l.ord > sharing
                           OR coalesce(g.n, 0) >= asked / sharing + (l.ord <= asked % sharing)::integer AS kept,
                           given_rank[g.last] AS last_rank, given_at[g.last] AS last_at, given_id[g.last] AS end_id
                      FROM unnest(seen_rank, seen_at, seen_id) WITH ORDINALITY AS l(rank, run_at, id, ord)
                      LEFT JOIN (SELECT o.ord, count(*) AS n, max(o.nth) AS last
                                   FROM unnest(givers) WITH ORDINALITY AS o(ord, nth) GROUP BY o.ord) AS g ON g.ord = l.ord)
                   AS s;
        END IF;
    END LOOP;
    IF {live due} - met_live - 2 * (lim - wanted) - 2 * coalesce(cardinality(seen_rank), 0) > {many passed}
       AND (tasks IS NOT NULL OR exclude_tenants IS NOT NULL) THEN
        PERFORM rota.hold(rota.list_queues(queues, exclude, newest), tasks, exclude_tenants, lim);
    END IF;
    passed := {dead due} - met - 2 * (lim - wanted) - 2 * coalesce(cardinality(seen_rank), 0);
    IF greatest(passed, {dead later} - met_later) > {many dead} OR (several OR awaiting) AND random() < 0.05 THEN
        PERFORM rota.tidy(passed, {dead later} - met_later, false);
    END IF;
END
$$;
