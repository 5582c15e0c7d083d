SELECT max(number) FROM rota_audit_seals
