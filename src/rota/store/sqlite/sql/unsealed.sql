SELECT count(*), min(at)
FROM (SELECT at FROM rota_audit INDEXED BY rota_audit_unsealed WHERE seal IS NULL ORDER BY id LIMIT ?)
