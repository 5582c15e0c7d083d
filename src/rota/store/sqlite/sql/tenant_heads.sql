-- The first jobs of some tenants in a queue at a rank, as far as they are of tasks that are open: of each at most
-- :each, beside at most 64 of other tasks.
SELECT json_group_array(json_array({met of rota_jobs}))
FROM json_each(:tenants) AS asked CROSS JOIN rota_jobs ON rota_jobs.rowid IN (
  SELECT rowid FROM (
    SELECT rowid, task FROM rota_jobs INDEXED BY rota_jobs_tenants
    WHERE state = 'queued' AND due = 1 AND lane IS NOT NULL AND queue = :queue AND rank = :rank
      AND tenant = asked.value
    ORDER BY run_at, id
    LIMIT :each + 64
  )
  WHERE task IN (SELECT value FROM json_each(:tasks))
  LIMIT :each
)
