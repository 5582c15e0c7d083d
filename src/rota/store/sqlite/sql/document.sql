SELECT kind, key, body, version, updated_at FROM rota_documents WHERE kind = ? AND key = ?
