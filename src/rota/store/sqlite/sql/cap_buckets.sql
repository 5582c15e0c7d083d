-- The keys of a family, but for those of a longer one, which that one governs.
UPDATE rota_buckets SET full_ns = :most
WHERE full_ns > :most AND substr(concurrency_key, 1, length(:prefix)) = :prefix
  AND NOT EXISTS (
    SELECT 1 FROM rota_limits AS longer
    WHERE longer.scope = 'family' AND coalesce(longer.running, longer.every_ns) IS NOT NULL
      AND length(longer.subject) > length(:prefix)
      AND substr(concurrency_key, 1, length(longer.subject)) = longer.subject
  )
