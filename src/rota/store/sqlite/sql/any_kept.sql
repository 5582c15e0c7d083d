SELECT 1 FROM rota_kept_keys
WHERE (tenant, key) IN (SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]') FROM json_each(?))
  AND kept_until > ?
LIMIT 1
