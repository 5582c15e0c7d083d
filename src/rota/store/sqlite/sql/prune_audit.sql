DELETE FROM rota_audit
WHERE rowid IN (SELECT rowid FROM rota_audit INDEXED BY rota_audit_at WHERE at < ? ORDER BY at LIMIT ?)
