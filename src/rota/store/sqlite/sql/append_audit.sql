INSERT INTO rota_audit ({audit}) VALUES ({audit values})
