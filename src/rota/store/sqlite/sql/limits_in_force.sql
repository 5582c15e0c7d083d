SELECT name, scope, subject, running, every_ns, burst, strict, full_ns, declared, chosen, version, updated_at
FROM rota_limits
