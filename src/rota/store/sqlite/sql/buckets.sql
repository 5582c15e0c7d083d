SELECT concurrency_key, full_ns FROM (SELECT concurrency_key, full_ns FROM rota_buckets LIMIT :most)
WHERE full_ns > :now
UNION
SELECT concurrency_key, full_ns FROM rota_buckets
WHERE concurrency_key IN (SELECT value FROM json_each(:keys))
