SELECT number, entries, min(last_at, sealed_at) FROM rota_audit_seals
WHERE pruned_at IS NULL ORDER BY number LIMIT 1000
