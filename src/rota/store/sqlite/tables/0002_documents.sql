-- Small versioned JSON documents: workers, gates, tokens and the like.
CREATE TABLE rota_documents (
  kind       TEXT    NOT NULL,
  key        TEXT    NOT NULL,
  body       TEXT    NOT NULL,
  version    INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  PRIMARY KEY (kind, key)
) WITHOUT ROWID;
