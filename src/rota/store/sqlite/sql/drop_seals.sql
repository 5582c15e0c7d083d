DELETE FROM rota_audit_seals WHERE number < ?
