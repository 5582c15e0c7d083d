-- The audit log as a hash chain: each seal covers a batch of entries and the seal before it. Writers add plain
-- rows; workers seal them later, so that no writer waits for another.
ALTER TABLE rota.audit ADD COLUMN seal bigint;
CREATE INDEX audit_unsealed ON rota.audit (id) WHERE seal IS NULL;
CREATE INDEX audit_seal ON rota.audit (seal, id) WHERE seal IS NOT NULL;

CREATE TABLE rota.audit_seals (
    number bigint PRIMARY KEY,
    previous text COLLATE "C" NOT NULL,
    content text COLLATE "C" NOT NULL,
    digest text COLLATE "C" NOT NULL,
    entries integer NOT NULL,
    first_id text COLLATE "C" NOT NULL,
    last_id text COLLATE "C" NOT NULL,
    last_at timestamptz NOT NULL,
    sealed_at timestamptz NOT NULL,
    pruned_at timestamptz
);

DROP TRIGGER keep_audit ON rota.audit;
CREATE TRIGGER keep_audit BEFORE TRUNCATE ON rota.audit
   FOR EACH STATEMENT EXECUTE FUNCTION rota.keep_audit();
CREATE TRIGGER keep_entry BEFORE UPDATE OR DELETE ON rota.audit
   FOR EACH ROW EXECUTE FUNCTION rota.keep_entry();

COMMENT ON TABLE rota.audit_seals IS 'The hash chain over rota.audit: `rota audit verify` checks it.';
COMMENT ON COLUMN rota.audit.seal IS 'The number of the seal that covers the line; NULL: none does yet.';
