SELECT kind, key, body, version, updated_at FROM rota_documents WHERE kind = ? ORDER BY key
