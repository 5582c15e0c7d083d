DELETE FROM rota_kept_keys WHERE tenant = ? AND key = ?
