SELECT max(id) FROM rota_audit
