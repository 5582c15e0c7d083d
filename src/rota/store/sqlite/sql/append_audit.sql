INSERT INTO rota_audit ({audit}) VALUES ({audit_values})
