-- Jobs as people read them, whatever table they are in.

-- Live jobs and finished ones apart: a question about one kind must not read the other.
CREATE VIEW rota.live AS
SELECT {queued job}
  FROM rota.queued
UNION ALL
SELECT {running job}
  FROM rota.running;

CREATE VIEW rota.ended AS
SELECT {done job}
  FROM rota.done;

CREATE VIEW rota.jobs AS SELECT * FROM rota.live UNION ALL SELECT * FROM rota.ended;

-- The partitions of rota.done that hold one day each.
CREATE VIEW rota.days AS
SELECT c.oid::regclass AS partition, (to_date(substr(c.relname, 6), 'YYYYMMDD')::timestamp AT TIME ZONE 'UTC') AS day
  FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid
 WHERE i.inhparent = 'rota.done'::regclass AND c.relname ~ '^done_\d{8}$';

COMMENT ON VIEW rota.live IS 'Jobs that are queued or running.';
COMMENT ON VIEW rota.ended IS 'Jobs that have finished.';
COMMENT ON VIEW rota.jobs IS 'All jobs. A question about live or finished jobs alone is faster on rota.live or rota.ended.';
COMMENT ON VIEW rota.days IS 'The days of history that have a partition of their own.';
