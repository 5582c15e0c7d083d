-- Row-level security for connections that read for one tenant: a second wall behind app.for_tenant.
-- Run it once as the owner of the schema rota, and again after an upgrade of rota; it can be repeated.
--
-- A connection that is a member of rota_tenant sees the rows of one tenant, and only after
--     SELECT set_config('rota.tenant', 'acme', true);
-- in the same transaction. Without it, or with an empty text, it sees no rows. It cannot write, and it reads no
-- other table, view or sequence of rota. Workers, producers and the owner see all rows as before.
BEGIN;

DO $$
BEGIN
    CREATE ROLE rota_tenant NOLOGIN NOBYPASSRLS;
EXCEPTION WHEN duplicate_object THEN
    NULL;
END
$$;

REVOKE ALL ON ALL TABLES IN SCHEMA rota FROM PUBLIC, rota_tenant;
REVOKE ALL ON ALL SEQUENCES IN SCHEMA rota FROM PUBLIC, rota_tenant;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA rota FROM rota_tenant;
GRANT USAGE ON SCHEMA rota TO rota_tenant;
GRANT SELECT ON rota.queued, rota.running, rota.done, rota.schedules TO rota_tenant;

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['queued', 'running', 'done', 'schedules'] LOOP
        EXECUTE format('DROP POLICY IF EXISTS rota_all ON rota.%I', name);
        EXECUTE format('DROP POLICY IF EXISTS rota_own ON rota.%I', name);
        -- all who are not limited to a tenant; asked once a statement
        EXECUTE format(
            'CREATE POLICY rota_all ON rota.%I USING ((SELECT NOT pg_has_role(current_user, ''rota_tenant'', ''usage'')))',
            name);
        EXECUTE format(
            'CREATE POLICY rota_own ON rota.%I TO rota_tenant '
            'USING (tenant = nullif(current_setting(''rota.tenant'', true), '''')) '
            'WITH CHECK (tenant = nullif(current_setting(''rota.tenant'', true), ''''))', name);
        EXECUTE format('ALTER TABLE rota.%I ENABLE ROW LEVEL SECURITY', name);
    END LOOP;
END
$$;

COMMIT;
