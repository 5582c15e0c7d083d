UPDATE rota_buckets SET full_ns = :most
WHERE full_ns > :most AND substr(concurrency_key, 1, length(:prefix)) = :prefix
