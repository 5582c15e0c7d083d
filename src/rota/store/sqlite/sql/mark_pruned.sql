UPDATE rota_audit_seals SET pruned_at = ? WHERE number <= ? AND pruned_at IS NULL
