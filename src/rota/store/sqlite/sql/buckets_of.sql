SELECT concurrency_key, full_ns FROM rota_buckets WHERE concurrency_key IN (SELECT value FROM json_each(?))
