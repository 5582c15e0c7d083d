-- Enqueueing for a tenant wrote two entries of its own, and beginning and finishing its job removed one each. The
-- line's index serves the quota of waiting jobs as well, so one is left for what is not in the line.
DROP INDEX rota_jobs_of_tenant;
CREATE INDEX rota_jobs_beside ON rota_jobs (tenant) WHERE state = 'queued' AND due <> 1 AND tenant <> 'default';

-- Where there are tenants, the default one is reached by its index entries as well; it had none for jobs from before.
UPDATE rota_jobs SET lane = ''
WHERE state = 'queued' AND due = 1 AND lane IS NULL
  AND EXISTS (SELECT 1 FROM rota_jobs WHERE state = 'queued' AND due = 1 AND lane IS NOT NULL);
