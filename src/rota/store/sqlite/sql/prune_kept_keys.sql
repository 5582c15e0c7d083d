DELETE FROM rota_kept_keys WHERE kept_until <= ?
