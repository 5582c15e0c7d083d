-- The newest segment, for jobs that the session stores afterwards: see segments.sql. It is also the default of the
-- column, for programs that do not name it. The lock comes first, so that
-- rota.tidy can see which sessions may still know an older one; an INSERT locks before it reads, too.
CREATE FUNCTION rota.newest_segment() RETURNS integer
LANGUAGE plpgsql
SET search_path = rota, pg_temp
AS $$
BEGIN
    LOCK TABLE rota.queued IN ROW EXCLUSIVE MODE;
    RETURN {newest segment};
END
$$;
