-- Enqueueing for a tenant wrote two entries of its own. The line's serves the quota of waiting jobs as well, so one
-- index is left for what is not in the line: see rota.count_waiting. Making it reads the waiting jobs once, which takes
-- about a second for a few million; the rest takes no time.
DROP INDEX rota.queued_of_tenant;
CREATE INDEX queued_beside ON rota.queued (tenant) WHERE due IS NOT true AND tenant <> 'default';
-- No two entries are equal, so looking for equal ones before a page is split finds none.
ALTER INDEX rota.queued_due SET (deduplicate_items = off);
ALTER INDEX rota.queued_tenant SET (deduplicate_items = off);
-- Where there are tenants, the default one is reached by its index entries as well; it had none for jobs from before.
UPDATE rota.queued SET lane = '' WHERE due AND lane IS NULL AND (SELECT bool_or(s.many) FROM rota.segments AS s);
