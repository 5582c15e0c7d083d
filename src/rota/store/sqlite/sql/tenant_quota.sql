-- How many jobs and schedules of a tenant wait. Those in the line are counted by the index that claims use.
WITH RECURSIVE {strands}
SELECT
  CASE WHEN ? = 'default' THEN
    (SELECT count(*) FROM (SELECT 1 FROM (
       SELECT tenant FROM rota_jobs INDEXED BY rota_jobs_live
       WHERE finished_at IS NULL AND state = 'queued' LIMIT 200000)
     WHERE tenant = 'default' LIMIT ?))
  ELSE
    (SELECT count(*) FROM (
       SELECT 1 FROM rota_jobs INDEXED BY rota_jobs_beside
       WHERE state = 'queued' AND due <> 1 AND tenant = ? AND tenant <> 'default'
       UNION ALL
       SELECT 1 FROM {strand jobs}
       WHERE waits.tenant = ?
       LIMIT ?))
  END,
  (SELECT count(*) FROM (SELECT 1 FROM rota_schedules WHERE tenant = ? LIMIT ?))
