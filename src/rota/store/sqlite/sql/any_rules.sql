-- One row if more than order matters to a claim: the version of the rules, whether jobs are held, and whether any
-- in the line can be reached by their tenants, which it may not have been noted that there are.
SELECT NULL, c.version, c.held, c.laned, c.fair FROM (
  SELECT
    version, fair,
    EXISTS (SELECT 1 FROM rota_jobs INDEXED BY rota_jobs_held WHERE state = 'queued' AND due = 2) AS held,
    EXISTS (
      SELECT 1 FROM rota_jobs INDEXED BY rota_jobs_tenants WHERE state = 'queued' AND due = 1 AND lane IS NOT NULL
    ) AS laned
  FROM rota_claiming
) AS c
WHERE c.held OR c.laned OR EXISTS (SELECT 1 FROM rota_limits) OR EXISTS (SELECT 1 FROM rota_tenants)
