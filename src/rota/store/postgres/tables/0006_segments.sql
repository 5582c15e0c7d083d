-- Due jobs lie in segments, so that claims can leave the index entries of jobs long gone behind them:
-- functions/segments.sql.

ALTER TABLE rota.queued ADD COLUMN segment integer NOT NULL DEFAULT 0;
ALTER TABLE rota.queued ALTER COLUMN segment SET DEFAULT rota.newest_segment();
DROP INDEX rota.queued_due;
CREATE INDEX queued_due ON rota.queued (segment, queue, rank, run_at, id) WHERE due;

-- A single row. Each change raises its version, so that the newest entry of the index is the one to read,
-- however many older versions of the row cannot be removed yet.
CREATE TABLE rota.segments (
    version bigint PRIMARY KEY,
    newest integer NOT NULL,  -- takes all jobs that become due
    opened_by xid8,
    closed integer[] NOT NULL DEFAULT '{}',  -- left to be emptied, not looked into yet
    -- what older segments still hold: in each, by queue, the place before which nothing is left
    old_segment integer[] NOT NULL DEFAULT '{}',
    old_queue text[] COLLATE "C" NOT NULL DEFAULT '{}',
    old_rank integer[] NOT NULL DEFAULT '{}',
    old_at timestamptz[] NOT NULL DEFAULT '{}',
    old_id uuid[] NOT NULL DEFAULT '{}',
    -- transactions that may yet commit a job into an older segment
    awaited text[] NOT NULL DEFAULT '{}',
    awaited_from integer[] NOT NULL DEFAULT '{}',  -- for each, the first such segment
    late_from integer,  -- one of them has ended: the segments to look into again
    late_to integer,
    later_from timestamptz NOT NULL DEFAULT '-infinity',  -- no job that is due later has an earlier time
    noted xid8,  -- a snapshot older than this transaction is an old one
    noted_at timestamptz,
    checked_at timestamptz,  -- when rota.check_segments last began
    strays_from integer NOT NULL DEFAULT 0,  -- earlier segments hold none and receive none
    strays_next integer NOT NULL DEFAULT 0,  -- where it continues
    strays_newest integer NOT NULL DEFAULT 0,  -- the newest segment when strays_xid was
    strays_xid xid8,
    swept_at timestamptz  -- when rota.reclaim last read all of a large rota.running
);
INSERT INTO rota.segments (version, newest) VALUES (1, 0);

COMMENT ON TABLE rota.segments IS 'Which segments of rota.queued claims look into. One row.';
