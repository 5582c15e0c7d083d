SELECT min(seal) FROM (
  SELECT min(seal) AS seal FROM rota_audit INDEXED BY rota_audit_seal
  WHERE seal < coalesce((SELECT min(number) FROM rota_audit_seals WHERE pruned_at IS NULL),
                        (SELECT max(number) + 1 FROM rota_audit_seals), 1)
  UNION ALL
  SELECT min(seal) FROM rota_audit INDEXED BY rota_audit_seal
  WHERE seal > coalesce((SELECT max(number) FROM rota_audit_seals), 0)
)
