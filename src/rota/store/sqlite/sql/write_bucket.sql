INSERT INTO rota_buckets (concurrency_key, full_ns)
SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]') FROM json_each(?) WHERE true
ON CONFLICT (concurrency_key) DO UPDATE SET full_ns = excluded.full_ns
