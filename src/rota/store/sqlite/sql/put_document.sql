INSERT INTO rota_documents (kind, key, body, version, updated_at) VALUES (?, ?, ?, 1, ?)
ON CONFLICT DO UPDATE SET body = excluded.body, version = version + 1, updated_at = excluded.updated_at
RETURNING version
