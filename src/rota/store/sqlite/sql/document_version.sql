SELECT version FROM rota_documents WHERE kind = ? AND key = ?
