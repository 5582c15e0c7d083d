-- How the runs of a schedule ended, by UTC day (days since 1970): whatever becomes of their jobs, which are
-- deleted after days that differ by outcome.
CREATE TABLE rota_run_counts (
  tenant     TEXT    NOT NULL,
  schedule   TEXT    NOT NULL,
  day        INTEGER NOT NULL,
  succeeded  INTEGER NOT NULL,
  failed     INTEGER NOT NULL,
  cancelled  INTEGER NOT NULL,
  timed      INTEGER NOT NULL,
  total_us   INTEGER NOT NULL,
  longest_us INTEGER NOT NULL,
  PRIMARY KEY (tenant, schedule, day)
) WITHOUT ROWID;

INSERT INTO rota_run_counts
SELECT tenant, schedule, finished_at / 86400000000, sum(state = 'succeeded'), sum(state = 'failed'),
  sum(state = 'cancelled'), sum(state <> 'cancelled' AND started_at IS NOT NULL),
  coalesce(sum(iif(state <> 'cancelled', finished_at - started_at, 0)), 0),
  coalesce(max(iif(state <> 'cancelled', finished_at - started_at, 0)), 0)
FROM rota_jobs WHERE schedule IS NOT NULL AND finished_at IS NOT NULL
GROUP BY 1, 2, 3;

-- For maintenance: very old days.
CREATE INDEX rota_run_counts_day ON rota_run_counts (day);
