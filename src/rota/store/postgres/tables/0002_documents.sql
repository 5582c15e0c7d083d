-- Small versioned JSON documents: workers, gates, tokens and the like.

CREATE TABLE rota.documents (
    kind text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    version bigint NOT NULL,
    updated_at timestamptz NOT NULL,
    body json NOT NULL,
    PRIMARY KEY (kind, key)
) WITH (fillfactor = 50);

COMMENT ON TABLE rota.documents IS 'Small versioned documents by kind and key: workers, gates, calendars, tokens.';
