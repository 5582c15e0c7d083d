UPDATE rota_kept_keys SET kept_until = :now + kept_us
WHERE (tenant, key, job) IN (
  SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]'), json_extract(value, '$[2]') FROM json_each(:keys)
)
