-- How the runs of a schedule ended, by UTC day: whatever becomes of their jobs, which are deleted after
-- days that differ by outcome. Slots are as in rota.tally.
CREATE TABLE rota.run_counts (
    tenant text COLLATE "C" NOT NULL,
    schedule text COLLATE "C" NOT NULL,
    day date NOT NULL,
    slot smallint NOT NULL,
    succeeded bigint NOT NULL,
    failed bigint NOT NULL,
    cancelled bigint NOT NULL,
    timed bigint NOT NULL,
    total_us bigint NOT NULL,
    longest_us bigint NOT NULL,
    PRIMARY KEY (tenant, schedule, day, slot)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 500);

INSERT INTO rota.run_counts
SELECT tenant, schedule, (finished_at AT TIME ZONE 'UTC')::date, 0,
       count(*) FILTER (WHERE state = 'succeeded'),
       count(*) FILTER (WHERE state = 'failed'),
       count(*) FILTER (WHERE state = 'cancelled'),
       count(started_at) FILTER (WHERE state <> 'cancelled'),
       coalesce(sum(extract(epoch FROM finished_at - started_at) * 1000000) FILTER (WHERE state <> 'cancelled'), 0),
       coalesce(max(extract(epoch FROM finished_at - started_at) * 1000000) FILTER (WHERE state <> 'cancelled'), 0)
  FROM rota.done WHERE schedule IS NOT NULL
 GROUP BY 1, 2, 3;

-- For maintenance: days that are over, and very old ones. A count changes neither.
CREATE INDEX run_counts_day ON rota.run_counts (day);
CREATE INDEX run_counts_spread ON rota.run_counts (day) WHERE slot <> 0;

COMMENT ON TABLE rota.run_counts IS 'How the runs of schedules ended, by UTC day.';
