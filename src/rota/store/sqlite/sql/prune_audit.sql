DELETE FROM rota_audit WHERE seal <= ?
