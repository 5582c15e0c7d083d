-- The schema itself, and the list of the table versions it has.

CREATE SCHEMA IF NOT EXISTS rota;

CREATE TABLE rota.migrations (
    version integer PRIMARY KEY,
    name text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

COMMENT ON SCHEMA rota IS
    'rota: durable jobs and schedules. `rota migrate` owns every table and function here; keep your own elsewhere.';
COMMENT ON TABLE rota.migrations IS 'The table versions applied by `rota migrate`. Functions are compared, not listed.';
