INSERT INTO rota_audit_seals ({seal}) VALUES ({seal values})
