SELECT json_group_array(json_array(concurrency_key, full_ns))
FROM json_each(?) AS asked CROSS JOIN rota_buckets ON concurrency_key = asked.value
