-- The claim where there are tenants, rules or held jobs. Rank by rank, from all queues that share it at once: the
-- next jobs of the line, those of tenants that the line does not show, and those of lanes. Limits let them
-- pass, in an order that is fair between tenants; what they do not admit is held. A limit that is full, a paused
-- tenant or an unknown task delays no other job.
-- free: jobs under limits that may be taken where not all of these are ample, NULL for any. freed: what gave a
-- place back in this turn, as lanes (k:KEY, t:TASK) and tenants (n:TENANT). state: what the last claim said.
-- recent: {holds: [[tenant, jobs]], in_hand: whether it still has these, begun: [[tenant, jobs]]}. goes_round: looks for tenants and lanes that the line does
-- not show, where that is not needed for a fair share. may_wait: for another claim under the limits of the last one.
-- The last row answers for the claim itself: next_due_at, in run_at the time, in created_at where the next one
-- starts, as since; in payload the state; in cancel_requested whether all limits were ample, see rota.admit.
CREATE FUNCTION rota.claim_fairly(
    worker text, lim integer, lease_until timestamptz, queues text[], exclude text[], tasks text[],
    exclude_tenants text[], since json, free integer, state json, recent json, freed text[], goes_round boolean,
    may_wait boolean, soonest timestamptz, now timestamptz)
RETURNS TABLE (
    next_due_at timestamptz, run_at text, created_at text, payload json,
    {claimed types})
LANGUAGE plpgsql
SET search_path = rota, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    first CONSTANT integer := -2147483648;
    last_id CONSTANT uuid := 'ffffffff-ffff-ffff-ffff-ffffffffffff';
    most_read CONSTANT integer := 4 * lim + 4000;  -- jobs of the line
    most_lanes CONSTANT integer := 2048;  -- that give nothing
    most_queues CONSTANT integer := 16;  -- whose tenants or lanes one round walks
    most_tenants CONSTANT integer := 2048;  -- that are weighed
    now_s CONSTANT double precision := extract(epoch FROM clock_timestamp());
    met CONSTANT bigint := {dead due};
    met_later CONSTANT bigint := {dead later};
    met_live CONSTANT bigint := {live due};
    s rota.segments%ROWTYPE;
    known bigint;
    several boolean;
    strand text[]; strand_segment integer[]; strand_rank integer[]; strand_at timestamptz[]; strand_id uuid[];
    holder text[]; holding integer[];  -- what the worker has in hand, by tenant, or was given in the last moments
    is_in_hand CONSTANT boolean := coalesce((recent->>'in_hand')::boolean, false);
    starter text[]; started integer[];  -- and the last jobs it was given, where a rate is all that counts
    -- the queues; up to which place the line of each has been read, and up to which rank its lanes
    names text[]; read_names text[]; seen_rank integer[]; seen_at timestamptz[]; seen_id uuid[]; held_to integer[];
    full_names text[] := '{}'; is_full boolean[];  -- its own limit admits nothing more
    is_again boolean;
    -- the place before which nothing is left in its line
    spot_rank integer[]; spot_at timestamptz[]; spot_id uuid[]; is_spotted boolean[];
    -- the state of each: tenants that wait in its line and their weight, when counted, for which rank; cursors
    s_n integer[]; s_weight double precision[]; s_light double precision[]; s_at double precision[]; s_rank integer[];
    s_tenant text[]; s_turn json[]; s_lane text[]; s_holder text[];
    head_rank integer[]; head_at timestamptz[]; head_id uuid[];
    r integer;  -- the rank of this round
    pick integer[]; has_held boolean[]; share integer[];  -- the queues that share it
    reach integer := 1; sight integer; shown integer[];  -- how many jobs of their lines are read
    per_tenant double precision[]; walk integer[]; in_turns boolean[]; step_segment integer[];
    deep_queue text := coalesce(state->'deep'->>0, ''); deep_rank integer := coalesce((state->'deep'->>1)::integer, first);
    deep_lane text := coalesce(state->'deep'->>2, ''); deep_tenant text := coalesce(state->'deep'->>3, '');
    is_round boolean := coalesce((state->'deep'->>4)::boolean, true);  -- it began at the first lane, and found nothing since
    is_deep boolean := false; is_end boolean; is_unfinished boolean := false; has_rate boolean := false;
    step_queue text[]; step_rank integer[]; step_lane text[]; step_tenant text[]; step_closed boolean[];
    from_queue text; from_rank integer; from_lane text; from_tenant text;  -- where this step began
    again_queue text[]; again_lane text[]; again_tenant text[];  -- lanes to read on at the same rank
    lanes_read integer := 0; 
    full_lanes text[] := '{}'; full_tenants text[] := '{}';  -- of keys that have been found full, and tenants
    locks text[];
    -- transactions under way, and the age of later ones; our own has the age 0
    busy xid[] := '{}'; busy_from integer := -2147483648;
    -- the candidates: place in pick, row, what they are under; whether from the line (0), a lane (1) or a tenant (2)
    c_j integer[]; c_place tid[]; c_id uuid[]; c_at timestamptz[]; c_tenant text[]; c_task text[]; c_key text[];
    c_units integer[]; c_price double precision[]; c_from smallint[]; c_lane text[]; c_verdict smallint[]; c_ruled smallint[];
    c_queue text[];
    deep_ranks integer[]; deep_j integer[]; deep_lanes text[]; deep_tenants text[];  -- lanes that have more than was read
    pick_j integer; in_line integer; line_at timestamptz; line_id uuid; is_plain boolean; quota integer; n integer; w double precision; i integer; one record;
    last_tenant text; so_far json; rounds_first text[]; rounds_n integer[];  -- tenants whose turn it is, whatever the order of arrival
    take_place tid[]; take_id uuid[]; take_ruled smallint[];
    hold_place tid[]; hold_id uuid[]; hold_lane text[];
    places tid[]; ruled smallint[]; ids uuid[];
    wanted integer := lim; looks integer := 0; lines_read integer := 0; is_patient boolean := true; is_ample boolean := true;
    are_ample boolean := true;  -- in all rounds
    has_opened boolean := false; has_more boolean := false; has_looked boolean := false; looks_round boolean;  -- into lanes
    passed bigint;
BEGIN
    SELECT * INTO s FROM rota.segments ORDER BY version DESC LIMIT 1;
    several := s.closed <> '{}' OR s.old_segment <> '{}';
    IF s.rules & 95 <> 0 AND NOT {sees newest} THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('limits need the isolation READ COMMITTED, but the role %I has %s', current_user,
                             current_setting('transaction_isolation')),
            HINT = format('ALTER ROLE %I SET default_transaction_isolation = ''read committed''', current_user);
    END IF;
    next_due_at := soonest;
    SELECT array_agg(h->>0), array_agg((h->>1)::integer) INTO holder, holding FROM json_array_elements(recent->'holds') AS h;
    IF s.many AND (state->>'turns')::boolean THEN  -- a rate lets few begin: who had few of them is next
        SELECT array_agg(h.tenant), array_agg(h.n) INTO starter, started
          FROM (SELECT u.tenant, max(u.n) AS n
                  FROM (SELECT b->>0, (b->>1)::integer FROM json_array_elements(recent->'begun') AS b
                        UNION ALL SELECT * FROM unnest(holder, holding)) AS u(tenant, n) GROUP BY u.tenant) AS h;
    END IF;
    IF since IS NOT NULL AND NOT several THEN  -- more urgent ones could lie in any segment
        SELECT array_agg(c.queue), array_agg(CASE WHEN u.urgent THEN first ELSE c.rank END), array_agg(c.run_at), array_agg(c.id)
          INTO names, seen_rank, seen_at, seen_id
          FROM json_to_recordset(since) AS c(queue text, rank integer, run_at timestamptz, id uuid), LATERAL (
               SELECT EXISTS (SELECT FROM rota.queued AS q
                               WHERE q.due AND q.segment = s.newest AND q.queue = c.queue AND q.rank < c.rank) AS urgent
               ) AS u;
        SELECT names || array_agg(q), seen_rank || array_agg(first), seen_at || array_agg('-infinity'::timestamptz),
               seen_id || array_agg(last_id)
          INTO names, seen_rank, seen_at, seen_id
          FROM unnest(rota.held_queues(queues, exclude)) AS q WHERE NOT q = ANY (names);
    END IF;
    -- the limits of the last claim: another one that is under way is waited for before anything is read
    locks := ARRAY(SELECT json_array_elements_text(state->'locks'));
    IF s.rules & 95 <> 0 AND locks <> '{}' THEN
        IF may_wait THEN
            PERFORM rota.lock_limits(locks, true);
        END IF;
        is_patient := false;
        locks := '{}';
    END IF;
    WHILE wanted > 0 LOOP
        IF names IS NULL AND NOT is_deep THEN
            IF looks > 0 THEN
                IF looks = 1 AND (s.awaited <> '{}' OR s.late_from IS NOT NULL) THEN
                    PERFORM rota.tidy(0, 0, true);
                END IF;
                known := s.version;
                SELECT * INTO s FROM rota.segments ORDER BY version DESC LIMIT 1;
                several := s.closed <> '{}' OR s.old_segment <> '{}';
                IF s.version = known OR looks > 3 THEN
                    is_deep := true;
                    CONTINUE;
                END IF;
            END IF;
            looks := looks + 1;
            names := ARRAY(SELECT DISTINCT q FROM unnest(
                CASE WHEN several THEN rota.list_queues(queues, exclude, s.newest)
                     ELSE rota.lanes(queues, exclude, s.newest) END || rota.held_queues(queues, exclude)) AS q);
            IF names = '{}' THEN
                names := NULL;
                CONTINUE;
            END IF;
            seen_rank := array_fill(first, ARRAY[cardinality(names)]);
            seen_at := array_fill('-infinity'::timestamptz, ARRAY[cardinality(names)]);
            seen_id := array_fill(last_id, ARRAY[cardinality(names)]);
            held_to := NULL;
            strand := NULL;
        END IF;
        IF NOT is_deep AND held_to IS NULL THEN
            held_to := array_fill(first, ARRAY[cardinality(names)]);
            read_names := names;
            is_full := array_fill(false, ARRAY[cardinality(names)]);
            spot_rank := seen_rank; spot_at := seen_at; spot_id := seen_id;
            is_spotted := is_full;
            SELECT array_agg(v.n ORDER BY u.i), array_agg(v.w ORDER BY u.i), array_agg(v.m ORDER BY u.i), array_agg(v.at ORDER BY u.i), array_agg(v.r ORDER BY u.i),
                   array_agg(v.t ORDER BY u.i), array_agg(v.o ORDER BY u.i), array_agg(v.l ORDER BY u.i), array_agg(v.h ORDER BY u.i)
              INTO s_n, s_weight, s_light, s_at, s_rank, s_tenant, s_turn, s_lane, s_holder
              FROM unnest(names) WITH ORDINALITY AS u(name, i) LEFT JOIN LATERAL json_to_record(state->'queues'->u.name)
                   AS v(n integer, w double precision, m double precision, at double precision, r integer, t text, o json, l text, h text) ON true;
            IF s.rules & 1 <> 0 THEN
                SELECT coalesce(f.is_full, is_full), least(next_due_at, f.next_at) INTO is_full, next_due_at
                  FROM rota.full_queues(names, now) AS f;
                full_names := ARRAY(SELECT u.name FROM unnest(names, is_full) AS u(name, is_full) WHERE u.is_full);
            END IF;
            IF several THEN
                SELECT array_agg(l.queue), array_agg(l.segment), array_agg(l.rank), array_agg(l.run_at), array_agg(l.id)
                  INTO strand, strand_segment, strand_rank, strand_at, strand_id
                  FROM rota.list_strands(names) AS l;
            END IF;
        END IF;
        c_j := NULL; c_queue := NULL; c_place := NULL; c_id := NULL; c_at := NULL; c_tenant := NULL; c_task := NULL; c_key := NULL;
        c_units := NULL; c_price := NULL; c_from := NULL; c_lane := NULL;
        c_verdict := NULL; c_ruled := NULL; deep_j := NULL; rounds_first := NULL; rounds_n := NULL; per_tenant := NULL;
        in_line := 0; is_plain := false; places := NULL; take_id := NULL;
        IF is_deep THEN
            -- what is left to look into: lanes, of all queues and ranks, from where the last claim ended
            EXIT WHEN lanes_read >= most_lanes;
            from_queue := deep_queue; from_rank := deep_rank; from_lane := deep_lane; from_tenant := deep_tenant;
            quota := least(256, most_lanes - lanes_read);
            SELECT array_agg(l.queue), array_agg(l.rank), array_agg(l.lane), array_agg(l.tenant), array_agg(l.is_closed)
              INTO step_queue, step_rank, step_lane, step_tenant, step_closed
              FROM rota.walk_held(deep_queue, deep_rank, deep_lane, deep_tenant, quota, queues, exclude || full_names,
                                  tasks, exclude_tenants) AS l;
            n := coalesce(cardinality(step_queue), 0);
            lanes_read := lanes_read + n;
            is_end := n < quota;
            quota := greatest(2, 2 * wanted / greatest(n, 1));
            IF n > 0 THEN
                SELECT array_agg(x.j), array_agg(x.queue), array_agg(x.place), array_agg(x.id), array_agg(x.run_at), array_agg(x.tenant),
                       array_agg(x.task), array_agg(x.key), array_agg(x.units), array_agg(x.price),
                       array_agg(1::smallint), array_agg(x.lane),
                       array_agg(CASE WHEN NOT coalesce(x.task = ANY (tasks), true) THEN 2
                                      WHEN x.tenant = ANY (exclude_tenants) THEN 4 ELSE 0 END::smallint), array_agg(x.rank)
                  INTO c_j, c_queue, c_place, c_id, c_at, c_tenant, c_task, c_key, c_units, c_price, c_from, c_lane, c_verdict, deep_ranks
                  FROM (SELECT 1 AS j, l.queue, f.* FROM unnest(step_queue, step_rank, step_lane, step_tenant, step_closed)
                               AS l(queue, rank, lane, tenant, is_closed), LATERAL (
                            SELECT q.ctid AS place, q.id, q.run_at, q.tenant, q.task, q.concurrency_key AS key, q.units, q.price,
                                   q.lane, q.rank
                              FROM rota.queued AS q
                             WHERE q.due IS NULL AND q.queue = l.queue AND q.rank = l.rank AND q.lane = l.lane
                               AND q.tenant = l.tenant
                             ORDER BY q.run_at, q.id LIMIT quota) AS f
                         WHERE NOT l.is_closed AND NOT l.lane = ANY (full_lanes)
                           AND NOT (l.lane = '' AND l.tenant = ANY (full_tenants)) ORDER BY f.rank, f.run_at, f.id) AS x;
                deep_queue := step_queue[n]; deep_rank := step_rank[n]; deep_lane := step_lane[n]; deep_tenant := step_tenant[n];
            END IF;
            IF c_id IS NULL THEN
                CONTINUE WHEN NOT is_end;
                -- the last lane: from the first on again, unless this round began there
                deep_queue := ''; deep_rank := first; deep_lane := ''; deep_tenant := '';
                EXIT WHEN is_round;
                is_round := true;
                CONTINUE;
            END IF;
            pick := ARRAY[1]; share := ARRAY[wanted];
            IF s.rules & 24 <> 0 THEN
                SELECT array_agg(y.j), array_agg(y.queue), array_agg(y.place), array_agg(y.id), array_agg(y.run_at), array_agg(y.tenant),
                       array_agg(y.task), array_agg(y.key), array_agg(y.units), array_agg(y.price), array_agg(y.origin),
                       array_agg(y.lane), array_agg(coalesce(y.verdict, 0::smallint))
                  INTO c_j, c_queue, c_place, c_id, c_at, c_tenant, c_task, c_key, c_units, c_price, c_from, c_lane, c_verdict
                  FROM (SELECT u.*
                          FROM rota.pick_earlier(c_j, c_key, c_queue, c_tenant, deep_ranks, c_at, c_id, tasks, exclude_tenants) AS x,
                               LATERAL unnest(
                                   c_j || x.js, c_queue || x.queues, c_place || x.places, c_id || x.ids, c_at || x.ats,
                                   c_tenant || x.tenants, c_task || x.tasks, c_key || x.keys, c_units || x.units, c_price || x.prices,
                                   c_from || x.froms, c_lane || x.lanes, deep_ranks || x.ranks, c_verdict) AS u(
                                   j, queue, place, id, run_at, tenant, task, key, units, price, origin, lane, rank, verdict)
                         ORDER BY u.rank, u.run_at, u.id) AS y;
            END IF;
            IF s.rules & 128 <> 0 THEN
                SELECT c_j || array_fill(1, ARRAY[coalesce(cardinality(x.js), 0)]), c_queue || x.queues, c_place || x.places, c_id || x.ids, c_at || x.ats,
                       c_tenant || x.tenants, c_task || x.tasks, c_key || x.keys, c_units || x.units, c_price || x.prices,
                       c_from || x.froms, c_lane || x.lanes, c_verdict || array_fill(0::smallint, ARRAY[coalesce(cardinality(x.js), 0)])
                  INTO c_j, c_queue, c_place, c_id, c_at, c_tenant, c_task, c_key, c_units, c_price, c_from, c_lane, c_verdict
                  FROM rota.pick_retried(c_key, c_id, ARRAY(SELECT DISTINCT q FROM unnest(c_queue) AS q), NULL, tasks, exclude_tenants) AS x;
            END IF;
        ELSE
            IF several THEN
                SELECT array_agg(m.rank ORDER BY u.i), array_agg(m.run_at ORDER BY u.i), array_agg(m.id ORDER BY u.i)
                  INTO head_rank, head_at, head_id
                  FROM generate_subscripts(names, 1) AS u(i) LEFT JOIN rota.merge_segments(
                       names, seen_rank, seen_at, seen_id, strand, strand_segment, strand_rank, strand_at, strand_id,
                       tasks, exclude_tenants, 2147483648, cardinality(names)) AS m ON m.ord = u.i;
            ELSE
                SELECT array_agg(h.rank ORDER BY u.i), array_agg(h.run_at ORDER BY u.i), array_agg(h.id ORDER BY u.i)
                  INTO head_rank, head_at, head_id
                  FROM unnest(names, seen_rank, seen_at, seen_id) WITH ORDINALITY AS u(name, rank, run_at, id, i)
                  LEFT JOIN LATERAL (
                       SELECT q.rank, q.run_at, q.id FROM rota.queued AS q
                        WHERE q.due AND q.segment = s.newest AND q.queue = u.name
                          AND (q.rank, q.run_at, q.id) > (u.rank, u.run_at, u.id)
                          AND (tasks IS NULL OR q.task = ANY (tasks))
                          AND (exclude_tenants IS NULL OR NOT q.tenant = ANY (exclude_tenants))
                        ORDER BY q.rank, q.run_at, q.id LIMIT 1) AS h ON true;
            END IF;
            SELECT h.best, array_agg(h.i ORDER BY h.run_at, h.id),
                   array_agg(coalesce(h.held = h.best, false) OR h.held_to = h.best ORDER BY h.run_at, h.id)
              INTO r, pick, has_held
              FROM (SELECT u.i, u.id, CASE WHEN k.rank <= u.rank THEN '-infinity' ELSE u.run_at END AS run_at, k.rank AS held, u.held_to,
                           least(u.rank, k.rank) AS rank, min(least(u.rank, k.rank)) OVER () AS best
                      FROM unnest(names, head_rank, head_at, head_id, held_to, is_full) WITH ORDINALITY
                           AS u(name, rank, run_at, id, held_to, is_full, i)
                      LEFT JOIN LATERAL (
                           SELECT q.rank FROM rota.queued AS q
                            WHERE q.due IS NULL AND q.queue = u.name AND q.rank > u.held_to
                            ORDER BY q.rank LIMIT 1) AS k ON true
                     WHERE NOT u.is_full) AS h
             WHERE h.rank = h.best GROUP BY h.best;
            IF pick IS NULL OR lines_read > most_read THEN
                is_unfinished := is_unfinished OR pick IS NOT NULL;
                names := NULL;
                IF is_unfinished THEN
                    EXIT;
                END IF;
                CONTINUE;
            END IF;
            n := cardinality(pick);
            share := ARRAY(SELECT wanted / n + (j <= wanted % n)::integer FROM generate_series(1, n) AS j);
            IF n > wanted THEN
                has_held := ARRAY(SELECT h AND j <= wanted FROM unnest(has_held) WITH ORDINALITY AS u(h, j));
            END IF;
            sight := least(wanted * reach, greatest(wanted, 2000));
            shown := CASE WHEN sight = wanted THEN share
                          ELSE ARRAY(SELECT sight / n + (j <= sight % n)::integer FROM generate_series(1, n) AS j) END;
            -- the line, but not what another session is just taking; under a limit for keys that one has to be waited for, if
            -- it has one
            busy := ARRAY(SELECT x::xid FROM pg_snapshot_xip(pg_current_snapshot()) AS x);
            busy_from := age(pg_snapshot_xmax(pg_current_snapshot())::xid);
            IF several THEN
                SELECT array_agg(u.j), array_agg(q.queue), array_agg(q.ctid), array_agg(q.id), array_agg(q.run_at), array_agg(q.tenant),
                       array_agg(q.task), array_agg(q.concurrency_key), array_agg(q.units), array_agg(q.price),
                       array_agg(0::smallint), array_agg(q.lane)
                  INTO c_j, c_queue, c_place, c_id, c_at, c_tenant, c_task, c_key, c_units, c_price, c_from, c_lane
                  FROM (SELECT ctid, * FROM rota.queued
                         WHERE due AND ctid = ANY (ARRAY(
                               SELECT m.place FROM rota.merge_segments(
                                      ARRAY(SELECT names[p] FROM unnest(pick) AS p), ARRAY(SELECT seen_rank[p] FROM unnest(pick) AS p),
                                      ARRAY(SELECT seen_at[p] FROM unnest(pick) AS p), ARRAY(SELECT seen_id[p] FROM unnest(pick) AS p),
                                      strand, strand_segment, strand_rank, strand_at, strand_id, tasks, exclude_tenants,
                                      r::bigint + 1, sight) AS m))
                         ORDER BY run_at, id) AS q
                  JOIN unnest(pick) WITH ORDINALITY AS u(p, j) ON names[u.p] = q.queue;
            ELSE
                SELECT array_agg(x.j), array_agg(x.queue), array_agg(x.place), array_agg(x.id), array_agg(x.run_at), array_agg(x.tenant),
                       array_agg(x.task), array_agg(x.key), array_agg(x.units), array_agg(x.price),
                       array_agg(0::smallint), array_agg(x.lane)
                  INTO c_j, c_queue, c_place, c_id, c_at, c_tenant, c_task, c_key, c_units, c_price, c_from, c_lane
                  FROM (SELECT u.j, f.* FROM unnest(pick, shown) WITH ORDINALITY AS u(p, shown, j), LATERAL (
                            SELECT q.ctid AS place, q.queue, q.id, q.run_at, q.tenant, q.task, q.concurrency_key AS key, q.units,
                                   q.price, q.lane
                              FROM rota.queued AS q
                             WHERE q.due AND q.segment = s.newest AND q.queue = names[u.p] AND q.rank <= r
                               AND (s.rules & 24 <> 0 AND q.concurrency_key IS NOT NULL
                                    OR NOT (q.xmax = ANY (busy) OR age(q.xmax) <= busy_from AND age(q.xmax) <> 0))
                               AND (q.rank, q.run_at, q.id) > (seen_rank[u.p], seen_at[u.p], seen_id[u.p])
                               AND (tasks IS NULL OR q.task = ANY (tasks))
                               AND (exclude_tenants IS NULL OR NOT q.tenant = ANY (exclude_tenants))
                             ORDER BY q.rank, q.run_at, q.id LIMIT u.shown) AS f) AS x;
            END IF;
            in_line := coalesce(cardinality(c_id), 0);
            line_at := c_at[in_line]; line_id := c_id[in_line];
            lines_read := lines_read + in_line;
            -- which part of the claim each tenant may have, and how many the line does not show
            IF s.many AND in_line > 0 THEN
                FOR look IN 1..2 LOOP
                    SELECT array_agg(f.rate ORDER BY f.j), array_agg(f.walk::integer ORDER BY f.j), array_agg(f.seen::integer ORDER BY f.j),
                           array_agg(f.in_turns ORDER BY f.j)
                      INTO per_tenant, walk, step_rank, in_turns
                      FROM rota.share_out(c_j, c_tenant, pick, share, shown, s_n, s_weight, s_light, holder, holding,
                                          s.rules & 32 <> 0, goes_round, names, r, s.newest) AS f;
                    EXIT WHEN look = 2;
                    n := 0;
                    FOR j IN 1..cardinality(pick) LOOP
                        i := pick[j];
                        CONTINUE WHEN step_rank[j] IS NULL OR s.rules & 32 = 0 AND share[j] >= {fair claim} AND step_rank[j] >= share[j]
                            OR s_at[i] BETWEEN now_s - 1 AND now_s AND s_rank[i] = r AND s_n[i] >= step_rank[j];
                        n := n + 1;
                        EXIT WHEN n > most_queues;
                        SELECT * INTO one
                          FROM rota.weigh_tenants(CASE WHEN several THEN ARRAY(SELECT DISTINCT x.segment FROM unnest(strand, strand_segment)
                                                                                  AS x(queue, segment) WHERE x.queue = names[i])
                                                       ELSE ARRAY[s.newest] END, names[i], r, most_tenants, s.rules & 32 <> 0) AS t;
                        s_n[i] := one.n; s_weight[i] := one.weight; s_light[i] := one.lightest; s_at[i] := now_s; s_rank[i] := r;
                    END LOOP;
                    EXIT WHEN n = 0;
                END LOOP;
                -- their jobs, from where the last claim ended
                n := 0;
                FOR j IN 1..cardinality(pick) LOOP
                    CONTINUE WHEN coalesce(walk[j], 0) = 0 AND NOT in_turns[j];
                    i := pick[j];
                    pick_j := j;
                    n := n + 1;
                    EXIT WHEN n > most_queues;
                    step_segment := CASE WHEN several THEN ARRAY(SELECT DISTINCT x.segment FROM unnest(strand, strand_segment)
                                                                     AS x(queue, segment) WHERE x.queue = names[i])
                                         ELSE ARRAY[s.newest] END;
                    IF in_turns[j] THEN
                        SELECT c_j || x.js, c_queue || x.queues, c_place || x.places, c_id || x.ids, c_at || x.ats, c_tenant || x.tenants,
                               c_task || x.tasks, c_key || x.keys, c_units || x.units, c_price || x.prices, c_from || x.froms, c_lane || x.lanes,
                               coalesce(x.last, s_tenant[i]), x.so_far, rounds_first || x.firsts,
                               coalesce(rounds_n, '{}') || array_fill(NULL::integer, ARRAY[
                                   coalesce(cardinality(rounds_first), 0) - coalesce(cardinality(rounds_n), 0)]) || x.numbers
                          INTO c_j, c_queue, c_place, c_id, c_at, c_tenant, c_task, c_key, c_units, c_price, c_from, c_lane, last_tenant,
                               so_far, rounds_first, rounds_n
                          FROM rota.take_turns(
                               step_segment, names[i], r, coalesce(s_tenant[i], ''), s_turn[i], j, share[j],
                               CASE WHEN is_in_hand THEN per_tenant[j] ELSE share[j] / s_weight[i] END, s_weight[i] / s_n[i],
                               ARRAY(SELECT x.tenant FROM unnest(c_j, c_tenant) AS x(j, tenant) WHERE x.j = pick_j),
                               ARRAY(SELECT x.run_at FROM unnest(c_j, c_at) AS x(j, run_at) WHERE x.j = pick_j),
                               ARRAY(SELECT x.id FROM unnest(c_j, c_id) AS x(j, id) WHERE x.j = pick_j), tasks, exclude_tenants,
                               CASE WHEN is_in_hand THEN holder END, holding) AS x;
                        s_turn[i] := so_far;
                        per_tenant[j] := 0;  -- of the others none comes first
                    ELSE
                        SELECT c_j || x.js, c_queue || x.queues, c_place || x.places, c_id || x.ids, c_at || x.ats, c_tenant || x.tenants,
                               c_task || x.tasks, c_key || x.keys, c_units || x.units, c_price || x.prices, c_from || x.froms, c_lane || x.lanes,
                               coalesce(x.last, s_tenant[i]), rounds_first || x.firsts
                          INTO c_j, c_queue, c_place, c_id, c_at, c_tenant, c_task, c_key, c_units, c_price, c_from, c_lane, last_tenant,
                               rounds_first
                          FROM rota.pick_tenants(
                               step_segment, names[i], r, coalesce(s_tenant[i], ''), walk[j], j, share[j], per_tenant[j],
                               ARRAY(SELECT x.tenant FROM unnest(c_j, c_tenant) AS x(j, tenant) WHERE x.j = pick_j),
                               ARRAY(SELECT x.run_at FROM unnest(c_j, c_at) AS x(j, run_at) WHERE x.j = pick_j),
                               ARRAY(SELECT x.id FROM unnest(c_j, c_id) AS x(j, id) WHERE x.j = pick_j), tasks, exclude_tenants,
                               holder, holding, s.rules & 32 <> 0) AS x;
                    END IF;
                    s_tenant[i] := last_tenant;
                END LOOP;
            END IF;
            -- lanes: some in turn, those where a place was freed, and those of the jobs above, whose turn comes first
            IF true = ANY (has_held) THEN
                -- if nothing could begin in the lanes, a large claim under rules leaves the others alone for a moment
                looks_round := lim < {fair claim} OR s.rules & 95 = 0 OR freed IS NOT NULL OR goes_round
                               OR coalesce(now >= to_timestamp((state->>'lanes_at')::double precision), true);
                SELECT array_agg(x.j) FILTER (WHERE x.tenant IS NOT NULL), array_agg(x.lane) FILTER (WHERE x.tenant IS NOT NULL),
                       array_agg(x.tenant) FILTER (WHERE x.tenant IS NOT NULL), array_agg(x.step) FILTER (WHERE x.tenant IS NOT NULL),
                       has_more OR count(x.step) >= {round lanes}
                  INTO deep_j, deep_lanes, deep_tenants, step_rank, has_more
                  FROM rota.choose_lanes(pick, has_held, names, held_to, s_lane, s_holder, r, c_j, c_tenant, c_task, c_key, freed,
                                         again_queue, again_lane, again_tenant, tasks, exclude_tenants, looks_round) AS x;
                n := coalesce(cardinality(deep_j), 0);
                has_looked := has_looked OR looks_round;
                FOR one IN  -- where the next claim continues
                    SELECT DISTINCT ON (u.j) u.j, u.lane, u.tenant
                      FROM unnest(deep_j, deep_lanes, deep_tenants, step_rank) AS u(j, lane, tenant, step)
                     WHERE u.step IS NOT NULL ORDER BY u.j, u.step DESC
                LOOP
                    s_lane[pick[one.j]] := one.lane; s_holder[pick[one.j]] := one.tenant;
                END LOOP;
                IF n > 0 THEN
                    quota := greatest(2, 2 * CASE WHEN again_lane IS NULL THEN wanted ELSE sight END / n);
                    SELECT c_j || array_agg(x.j), c_queue || array_agg(x.queue), c_place || array_agg(x.place), c_id || array_agg(x.id),
                           c_at || array_agg(x.run_at), c_tenant || array_agg(x.tenant), c_task || array_agg(x.task),
                           c_key || array_agg(x.key), c_units || array_agg(x.units), c_price || array_agg(x.price),
                           c_from || array_agg(1::smallint), c_lane || array_agg(x.lane)
                      INTO c_j, c_queue, c_place, c_id, c_at, c_tenant, c_task, c_key, c_units, c_price, c_from, c_lane
                      FROM (SELECT l.j, f.* FROM unnest(deep_j, deep_lanes, deep_tenants) AS l(j, lane, tenant), LATERAL (
                                SELECT q.ctid AS place, q.queue, q.id, q.run_at, q.tenant, q.task, q.concurrency_key AS key, q.units,
                                       q.price, q.lane
                                  FROM rota.queued AS q
                                 WHERE q.due IS NULL AND q.queue = names[pick[l.j]] AND q.rank = r AND q.lane = l.lane
                                   AND q.tenant = l.tenant
                                 -- few of what is perhaps still full
                                 ORDER BY q.run_at, q.id
                                 LIMIT CASE WHEN l.lane LIKE 'k:%' AND s.rules & 24 <> 0 THEN least(quota, 8)
                                                 WHEN s.rules & CASE l.lane WHEN '' THEN 68 ELSE 2 END <> 0 THEN least(quota, 64)
                                                 ELSE quota END) AS f) AS x;
                    SELECT array_agg(l.j), array_agg(l.lane), array_agg(l.tenant) INTO deep_j, deep_lanes, deep_tenants
                      FROM (SELECT u.j, u.lane, u.tenant FROM unnest(c_j, c_lane, c_tenant, c_from) AS u(j, lane, tenant, origin)
                             WHERE u.origin = 1 GROUP BY 1, 2, 3
                            HAVING count(*) >= CASE WHEN u.lane LIKE 'k:%' AND s.rules & 24 <> 0 THEN least(quota, 8)
                                                 WHEN s.rules & CASE u.lane WHEN '' THEN 68 ELSE 2 END <> 0 THEN least(quota, 64)
                                                 ELSE quota END) AS l;
                END IF;
            ELSE
                has_looked := has_looked OR NOT EXISTS (SELECT FROM rota.queued AS q WHERE q.due IS NULL);
            END IF;
            IF s.many AND deep_j IS NOT NULL THEN
                per_tenant := rota.share_with_held(per_tenant, share, c_j, c_tenant, c_from, s.rules & 32 <> 0);
            END IF;
            IF s.rules & 24 <> 0 AND c_id IS NOT NULL THEN
                SELECT c_j || x.js, c_queue || x.queues, c_place || x.places, c_id || x.ids, c_at || ARRAY(  -- a more urgent rank comes first
                           SELECT u.run_at - least(r::bigint - u.rank, 3) * interval '2000 years' FROM unnest(x.ats, x.ranks) AS u(run_at, rank)),
                       c_tenant || x.tenants,
                       c_task || x.tasks, c_key || x.keys, c_units || x.units, c_price || x.prices, c_from || x.froms, c_lane || x.lanes
                  INTO c_j, c_queue, c_place, c_id, c_at, c_tenant, c_task, c_key, c_units, c_price, c_from, c_lane
                  FROM rota.pick_earlier(c_j, c_key, c_queue, c_tenant, array_fill(r, ARRAY[cardinality(c_id)]), c_at, c_id, tasks,
                                         exclude_tenants) AS x;
            END IF;
            IF s.rules & 128 <> 0 AND c_id IS NOT NULL THEN
                -- of a strict key only the job that waits for its retry may begin, wherever it waits
                SELECT c_j || x.js, c_queue || x.queues, c_place || x.places, c_id || x.ids, c_at || x.ats, c_tenant || x.tenants,
                       c_task || x.tasks, c_key || x.keys, c_units || x.units, c_price || x.prices, c_from || x.froms, c_lane || x.lanes
                  INTO c_j, c_queue, c_place, c_id, c_at, c_tenant, c_task, c_key, c_units, c_price, c_from, c_lane
                  FROM rota.pick_retried(c_key, c_id, ARRAY(SELECT names[p] FROM unnest(pick) AS p), r, tasks, exclude_tenants) AS x;
            END IF;
            IF coalesce(cardinality(c_id), 0) > in_line OR rounds_n IS NOT NULL
                OR s.many AND in_line > 0 AND (sight > wanted OR s.rules & 95 <> 0) THEN
                SELECT array_agg(x.j), array_agg(x.queue), array_agg(x.place), array_agg(x.id), array_agg(x.run_at), array_agg(x.tenant),
                       array_agg(x.task), array_agg(x.key), array_agg(x.units), array_agg(x.price), array_agg(x.origin),
                       array_agg(x.lane), array_agg(x.verdict)
                  INTO c_j, c_queue, c_place, c_id, c_at, c_tenant, c_task, c_key, c_units, c_price, c_from, c_lane, c_verdict
                  FROM rota.order_fairly(
                       c_j, c_queue, c_place, c_id, c_at, c_tenant, c_task, c_key, c_units, c_price, c_from, c_lane, per_tenant, rounds_first,
                       rounds_n, coalesce(starter, holder), coalesce(started, holding), starter IS NOT NULL AND rounds_n IS NULL, s.many AND s.rules & 32 <> 0, deep_j, deep_lanes, deep_tenants, tasks, exclude_tenants) AS x;
            END IF;
        END IF;
        -- admission
        IF c_id IS NOT NULL THEN
            c_verdict := coalesce(c_verdict, array_fill(0::smallint, ARRAY[cardinality(c_id)]));
            c_ruled := NULL;
            is_ample := true;
            IF s.rules & 95 <> 0 THEN
                IF s.rules & 24 <> 0 THEN
                    c_verdict := (SELECT k.verdict FROM rota.keep_key_order(c_queue, c_tenant, c_key, s.rules, NULL, c_verdict) AS k);
                END IF;
                FOR look IN 1..2 LOOP
                    SELECT * INTO one FROM rota.admit(c_queue, c_task, c_tenant, c_key, c_id, c_units, c_price, s.rules, is_patient, lim, now, c_verdict);
                    EXIT WHEN one.has_waited OR s.rules & 24 = 0 OR one.ruled IS NULL;
                    SELECT k.verdict, k.is_again INTO one.verdict, is_again
                      FROM rota.keep_key_order(c_queue, c_tenant, c_key, s.rules, CASE look WHEN 1 THEN c_verdict END, one.verdict) AS k;
                    EXIT WHEN NOT is_again;
                    c_verdict := one.verdict;
                END LOOP;
                IF one.has_waited THEN
                    is_patient := false;
                    IF is_deep THEN
                        deep_queue := from_queue; deep_rank := from_rank; deep_lane := from_lane; deep_tenant := from_tenant;
                        lanes_read := lanes_read - cardinality(step_queue);
                    END IF;
                    CONTINUE;
                END IF;
                is_ample := one.is_ample;
                are_ample := are_ample AND is_ample;
                c_verdict := one.verdict; c_ruled := one.ruled; has_rate := one.has_rate;
                next_due_at := least(next_due_at, one.next_at);
                -- what is left alone once, is so to the end of the claim: others of its key do not overtake it
                is_patient := CASE WHEN 16 = ANY (c_verdict) OR is_patient IS NULL THEN NULL ELSE is_patient AND c_ruled IS NULL END;
            END IF;
            -- mostly the line as it is, and nothing is full
            is_plain := NOT is_deep AND cardinality(c_id) = in_line AND sight = wanted AND 0 = ALL (c_verdict)
                        AND (is_ample OR free IS NULL OR c_ruled IS NULL OR free >= in_line);
            IF is_plain THEN
                take_place := c_place; take_id := c_id; take_ruled := c_ruled; hold_place := NULL;
            ELSE
            SELECT array_agg(x.place) FILTER (WHERE x.taken), array_agg(x.id) FILTER (WHERE x.taken), array_agg(x.ruled) FILTER (WHERE x.taken),
                   coalesce(bool_or(x.taken AND x.origin = 1), false) OR has_opened,
                   full_lanes || (array_agg(DISTINCT x.lane) FILTER (WHERE x.verdict = 8 AND x.origin = 1 AND x.lane LIKE 'k:%' AND s.rules & 128 = 0))[1:64],
                   -- of a budget, something may be left for a lower price
                   full_tenants || (array_agg(DISTINCT x.tenant) FILTER (WHERE x.verdict = 4 AND x.origin = 1 AND s.rules & 68 = 4))[1:64],
                   array_agg(x.place) FILTER (WHERE x.held), array_agg(x.id) FILTER (WHERE x.held),
                   array_agg(CASE x.verdict WHEN 8 THEN 'k:' || x.key WHEN 2 THEN 't:' || x.task ELSE '' END) FILTER (WHERE x.held)
              INTO take_place, take_id, take_ruled, has_opened, full_lanes, full_tenants, hold_place, hold_id, hold_lane
              FROM (SELECT y.*, y.verdict = 0 AND y.nth <= share[y.j] AS taken,
                           -- while one of its key or tenant that comes before stays in the line, so does this one: else it could come first
                           y.verdict IN (2, 4, 8)
                           AND NOT bool_or(y.key IS NOT NULL AND y.origin <> 1 AND (y.verdict IN (1, 16) OR y.verdict = 0 AND y.nth > share[y.j]))
                               OVER (PARTITION BY y.j, y.tenant, y.key ORDER BY y.i)
                           AND NOT (y.verdict = 4 AND bool_or(y.origin <> 1 AND y.verdict = 0 AND y.nth > share[y.j])
                                        OVER (PARTITION BY y.j, y.tenant ORDER BY y.i))
                           -- from a lane only to a narrower one, so that none goes to and fro
                           AND CASE WHEN y.origin <> 1 THEN true WHEN y.verdict = 8 THEN y.lane NOT LIKE 'k:%'
                                    ELSE y.verdict = 2 AND y.lane = '' END AS held
                      FROM (SELECT z.*, row_number() OVER (PARTITION BY z.j, z.verdict = 0 ORDER BY z.i) AS nth
                              FROM (SELECT u.i, u.j, u.place, u.id, u.tenant, u.task, u.key, u.origin, u.lane, u.ruled,
                                           CASE WHEN u.verdict = 0 AND u.ruled > 0 AND free IS NOT NULL AND NOT is_ample AND count(*)
                                                     FILTER (WHERE u.verdict = 0 AND u.ruled > 0) OVER (ORDER BY u.i) > free
                                                THEN 16 ELSE u.verdict END AS verdict
                                      FROM unnest(c_j, c_place, c_id, c_tenant, c_task, c_key, c_from, c_lane, c_verdict, c_ruled)
                                           WITH ORDINALITY AS u(j, place, id, tenant, task, key, origin, lane, verdict, ruled, i)) AS z) AS y) AS x;
            END IF;
            -- the next claim waits for these first; those under which nothing begins delay no other claim
            IF s.rules & 95 <> 0 AND cardinality(locks) < 8 AND EXISTS (SELECT FROM unnest(take_ruled) AS b WHERE b > 0) THEN
                locks := locks || one.locked;
            END IF;
            -- only now, so that no more are locked than are taken
            SELECT array_agg(q.place), array_agg(q.id), array_agg(u.ruled) INTO places, ids, ruled
              FROM (SELECT ctid AS place, id FROM rota.queued WHERE ctid = ANY (take_place) AND due IS NOT false
                       FOR UPDATE SKIP LOCKED) AS q
              JOIN unnest(take_id, take_ruled) AS u(id, ruled) ON u.id = q.id;
            IF s.rules & 24 <> 0 AND coalesce(cardinality(places), 0) < cardinality(take_id) THEN
                is_patient := NULL;  -- another session has one of them: nor do others of its key overtake that one
            END IF;
            IF places IS NOT NULL THEN
                IF has_rate AND c_ruled IS NOT NULL THEN
                    PERFORM rota.take_units(
                        array_agg(u.queue), array_agg(u.task), array_agg(u.tenant), array_agg(u.key), array_agg(u.units), s.rules, now)
                       FROM unnest(c_id, c_queue, c_task, c_tenant, c_key, c_units) AS u(id, queue, task, tenant, key, units)
                       JOIN unnest(ids) AS t(id) ON t.id = u.id;
                END IF;
                RETURN QUERY
                WITH picked AS (
                    DELETE FROM rota.queued WHERE ctid = ANY (places) RETURNING *
                )
                INSERT INTO rota.running AS r (
                    {carried except lease_token, attempt, started_at},
                    lease_token, attempt, started_at, worker, lease_until, cancel_requested, ruled)
                SELECT {carried of p except lease_token, attempt, started_at},
                       p.lease_token + 1, p.attempt + 1, now, claim_fairly.worker, claim_fairly.lease_until, p.cancel_requested,
                       nullif(u.ruled, 0)
                  FROM picked AS p LEFT JOIN unnest(ids, ruled) AS u(id, ruled) ON u.id = p.id
                RETURNING NULL::timestamptz, r.run_at::text, r.created_at::text,
                          coalesce(r.payload, (SELECT p.body FROM rota.payloads AS p WHERE p.job = r.id)),
                          {claimed of r};
                wanted := wanted - cardinality(places);
                is_round := false;
                lanes_read := greatest(lanes_read - cardinality(places), 0);
                IF NOT is_ample THEN
                    free := free - (SELECT count(*) FROM unnest(ruled) AS b WHERE b > 0);
                END IF;
            END IF;
            IF hold_place IS NOT NULL THEN
                is_round := is_round AND NOT is_deep;
                UPDATE rota.queued AS q SET due = NULL, lane = u.lane FROM unnest(hold_id, hold_lane) AS u(id, lane)
                 WHERE q.id = u.id AND q.ctid = ANY (ARRAY(
                       SELECT x.ctid FROM rota.queued AS x WHERE x.ctid = ANY (hold_place) AND x.due IS NOT false
                          FOR UPDATE SKIP LOCKED));
            END IF;
        END IF;
        -- for jobs under a limit no slot is left: what waits behind them is for a claim that has one
        EXIT WHEN free <= 0 AND NOT is_ample AND EXISTS (
            SELECT FROM unnest(c_id, c_verdict, c_ruled) AS u(id, verdict, ruled) LEFT JOIN unnest(ids) AS t(id) ON t.id = u.id
             WHERE u.verdict = 0 AND u.ruled > 0 AND t.id IS NULL);
        IF is_deep THEN
            CONTINUE;
        END IF;
        IF 2 * coalesce(cardinality(take_id), 0) < sight / reach THEN
            reach := least(reach * 4, 4096);  -- most are held up, not merely taken by others: read more at once
        END IF;
        again_queue := NULL; again_lane := NULL; again_tenant := NULL;
        IF deep_j IS NOT NULL AND wanted > 0 THEN
            -- what waits behind jobs that began, or left for a narrower lane, comes before all of the next rank
            SELECT array_agg(x.queue), array_agg(x.lane), array_agg(x.tenant), lines_read + coalesce(sum(x.n), 0)
              INTO again_queue, again_lane, again_tenant, lines_read
              FROM (SELECT names[pick[d.j]] AS queue, d.lane, d.tenant, count(*) AS n
                      FROM unnest(deep_j, deep_lanes, deep_tenants) AS d(j, lane, tenant)
                      JOIN unnest(c_j, c_lane, c_tenant, c_from, c_id) AS c(j, lane, tenant, origin, id)
                        ON c.j = d.j AND c.lane = d.lane AND c.tenant = d.tenant AND c.origin = 1
                      JOIN unnest(ids || CASE WHEN hold_place IS NOT NULL THEN hold_id END) AS m(id) ON m.id = c.id
                     GROUP BY 1, 2, 3) AS x;
        END IF;
        -- how far each queue has been read, and what is left in its line
        IF is_plain AND cardinality(pick) = 1 THEN
            i := pick[1];
            IF has_held[1] THEN
                held_to[i] := r;
            END IF;
            IF NOT is_spotted[i] THEN
                spot_rank[i] := r; spot_at[i] := line_at; spot_id[i] := line_id;
            END IF;
            seen_rank[i] := r;
            seen_at[i] := CASE WHEN in_line < sight THEN 'infinity' ELSE line_at END;
            seen_id[i] := CASE WHEN in_line < sight THEN last_id ELSE line_id END;
            CONTINUE;
        END IF;
        FOR one IN
            SELECT u.j, p.i, p.has_held, count(l.id) AS n, p.shown, bool_or(l.verdict = 1) AS is_full,
                   (array_agg(l.run_at ORDER BY l.run_at DESC, l.id DESC))[1] AS last_at,
                   (array_agg(l.id ORDER BY l.run_at DESC, l.id DESC))[1] AS last_id,
                   min(l.run_at) FILTER (WHERE l.is_left) AS left_at,
                   min(l.run_at) FILTER (WHERE l.is_next) AS next_at  -- beyond its share of this round
              FROM generate_subscripts(pick, 1) AS u(j)
              JOIN unnest(pick, has_held, shown) WITH ORDINALITY AS p(i, has_held, shown, j) ON p.j = u.j
              LEFT JOIN (SELECT c.*, c.verdict IN (0, 1, 16) AND b.id IS NULL AS is_left, c.verdict = 0 AND t.id IS NULL AS is_next
                           FROM unnest(c_j, c_id, c_at, c_from, c_verdict) AS c(j, id, run_at, origin, verdict)
                           LEFT JOIN unnest(take_id) AS t(id) ON t.id = c.id
                           LEFT JOIN unnest(ids) AS b(id) ON b.id = c.id
                          WHERE c.origin = 0) AS l ON l.j = u.j
             GROUP BY u.j, p.i, p.has_held, p.shown
        LOOP
            i := one.i;
            CONTINUE WHEN share[one.j] = 0;
            IF one.is_full THEN
                is_full[i] := true;
                full_names := full_names || names[i];
            END IF;
            IF one.has_held THEN
                held_to[i] := r - coalesce(names[i] = ANY (again_queue), false)::integer;
            END IF;
            IF one.n > 0 AND NOT is_spotted[i] THEN
                IF one.left_at IS NULL THEN
                    spot_rank[i] := r; spot_at[i] := one.last_at; spot_id[i] := one.last_id;
                ELSE
                    is_spotted[i] := true;
                    IF spot_rank[i] < r OR spot_at[i] < one.left_at - interval '1 microsecond' THEN
                        spot_rank[i] := r; spot_at[i] := one.left_at - interval '1 microsecond'; spot_id[i] := last_id;
                    END IF;
                END IF;
            END IF;
            seen_rank[i] := r;
            IF one.next_at IS NOT NULL THEN
                seen_at[i] := one.next_at - interval '1 microsecond'; seen_id[i] := last_id;
            ELSIF one.n < one.shown THEN
                seen_at[i] := 'infinity'; seen_id[i] := last_id;
            ELSE
                seen_at[i] := one.last_at; seen_id[i] := one.last_id;
            END IF;
        END LOOP;
    END LOOP;
    IF is_deep AND wanted > 0 AND lanes_read >= most_lanes THEN
        is_unfinished := true;
    END IF;
    IF {live due} - met_live - 2 * (lim - wanted) - 2 * lines_read - 2 * coalesce(cardinality(names), 0) > {many passed}
       AND (tasks IS NOT NULL OR exclude_tenants IS NOT NULL) THEN
        PERFORM rota.hold(rota.list_queues(queues, exclude, s.newest), tasks, exclude_tenants, lim);
    END IF;
    passed := {dead due} - met - 2 * (lim - wanted) - 2 * coalesce(cardinality(names), 0);
    IF greatest(passed, {dead later} - met_later) > {many dead}
       OR (several OR s.awaited <> '{}' OR s.late_from IS NOT NULL) AND random() < 0.05 THEN
        PERFORM rota.tidy(passed, {dead later} - met_later, false);
    END IF;
    IF is_unfinished THEN
        next_due_at := now;
    END IF;
    run_at := now::text;
    IF NOT several AND wanted <= 0 THEN
        created_at := (SELECT json_agg(json_build_object('queue', u.queue, 'rank', u.rank, 'run_at', u.run_at, 'id', u.id))
                         FROM unnest(read_names, spot_rank, spot_at, spot_id) AS u(queue, rank, run_at, id) WHERE u.rank > first)::text;
    END IF;
    payload := json_build_object(
        'queues', (SELECT json_object_agg(u.queue, json_strip_nulls(json_build_object(
                              -- counted again after a second, or four jobs for each tenant
                              'n', u.n, 'w', u.w, 'm', u.m, 'at', u.at - (lim - wanted) / (4.0 * greatest(u.n, 1)), 'r', u.r, 't', u.t, 'o', u.o, 'l', u.l, 'h', u.h)))
                     FROM (SELECT * FROM unnest(read_names, s_n, s_weight, s_light, s_at, s_rank, s_tenant, s_turn, s_lane, s_holder)
                                  AS v(queue, n, w, m, at, r, t, o, l, h) WHERE v.at IS NOT NULL OR v.l IS NOT NULL LIMIT 64) AS u),
        'locks', coalesce((SELECT json_agg(DISTINCT l) FROM unnest(locks[1:8]) AS l), '[]'),
        'turns', has_rate AND NOT is_ample,
        -- if no held job could begin, when to look again; sooner if there are lanes that were not looked into
        'version', s.version,
        'lanes_at', CASE WHEN has_opened OR is_unfinished THEN NULL
                         WHEN has_looked OR is_deep THEN extract(epoch FROM now) + CASE WHEN has_more THEN 0.01 ELSE 0.04 END
                         WHEN (state->>'version')::bigint = s.version THEN (state->>'lanes_at')::double precision END,
        'walk', state->'walk',
        'deep', json_build_array(deep_queue, deep_rank, deep_lane, deep_tenant, is_round));
    cancel_requested := are_ample AND full_names = '{}';
    id := NULL;
    RETURN NEXT;
END
$$;
