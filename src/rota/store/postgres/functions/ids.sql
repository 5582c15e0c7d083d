-- Ids that grow with time: UUIDv7.

CREATE FUNCTION rota.born_at(id uuid) RETURNS timestamptz
LANGUAGE sql IMMUTABLE PARALLEL SAFE
SET search_path = rota, pg_temp
AS $$
    -- The time inside a UUIDv7; other ids say nothing about it.
    SELECT CASE WHEN substr(id::text, 15, 1) = '7'
                THEN to_timestamp((('x' || substr(replace(id::text, '-', ''), 1, 12))::bit(48)::bigint) / 1000.0)
                ELSE '-infinity' END
$$;

CREATE FUNCTION rota.id_at(at timestamptz) RETURNS uuid
LANGUAGE sql VOLATILE
SET search_path = rota, pg_temp
AS $$
    SELECT (lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') || '7'
            || substr(r, 14, 3) || substr('89ab', 1 + ('x' || substr(r, 17, 1))::bit(4)::int % 4, 1)
            || substr(r, 18))::uuid
      FROM (SELECT replace(gen_random_uuid()::text, '-', '')) AS random(r)
$$;

COMMENT ON FUNCTION rota.id_at(timestamptz) IS 'A new UUIDv7 of this instant.';

-- What a notification names a queue by: every role of the database may listen, and a name may say too much.
CREATE FUNCTION rota.hint_of(queue text) RETURNS text
LANGUAGE sql IMMUTABLE
SET search_path = rota, pg_temp
AS $$
    SELECT left(encode(sha256(convert_to(queue, 'UTF8')), 'hex'), 16)
$$;
