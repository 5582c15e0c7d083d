-- Few different durations are in use: each is looked up by itself, so that jobs which are kept longer are not
-- read. :now: now, in microseconds.
WITH RECURSIVE spans (keep) AS (
  SELECT min(keep) FROM rota_jobs INDEXED BY rota_jobs_keep WHERE keep IS NOT NULL AND finished_at IS NOT NULL
  UNION ALL
  SELECT (
    SELECT min(later.keep) FROM rota_jobs AS later INDEXED BY rota_jobs_keep
    WHERE later.keep > spans.keep AND later.keep IS NOT NULL AND later.finished_at IS NOT NULL
  ) FROM spans WHERE spans.keep IS NOT NULL
)
SELECT job.finished_at, job.id, job.queue, job.task, job.state, job.tenant, job.schedule
FROM spans CROSS JOIN rota_jobs AS job INDEXED BY rota_jobs_keep
WHERE job.keep = spans.keep AND job.keep IS NOT NULL AND job.finished_at IS NOT NULL
  AND job.finished_at < :now - CAST(spans.keep * 1000000 AS INTEGER)
LIMIT :most
