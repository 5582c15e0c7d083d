INSERT INTO rota_buckets (concurrency_key, full_ns) VALUES (?, ?)
ON CONFLICT (concurrency_key) DO UPDATE SET full_ns = excluded.full_ns
