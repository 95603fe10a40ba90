-- Ids in PostgreSQL 13 to 18. A test runs all of this on the version that is installed.

-- UUIDs, and the rows of a span of time. `uuidctl bounds` prints the lowest and the highest id of the span.

CREATE TABLE orders (id uuid PRIMARY KEY);

-- uuidctl bounds v7 2022-02-22T19:22:22Z --unit s
SELECT id FROM orders WHERE id BETWEEN '017f22e2-79b0-7000-8000-000000000000'
                                   AND '017f22e2-7d97-7fff-bfff-ffffffffffff';

-- uuidctl bounds v6 2022-02-22T19:22:22Z --unit s
SELECT id FROM orders WHERE id BETWEEN '1ec9414c-232a-6b00-8000-000000000000'
                                   AND '1ec9414c-2cb4-617f-bfff-ffffffffffff';

-- uuidctl bounds ulid 2022-02-22T19:22:22Z --unit s --uuid
SELECT id FROM orders WHERE id BETWEEN '017f22e2-79b0-0000-0000-000000000000'
                                   AND '017f22e2-7d97-ffff-ffff-ffffffffffff';

-- KSUIDs and Push IDs are text, and sort by time if they are compared byte by byte.

CREATE TABLE events (id text COLLATE "C" PRIMARY KEY);

-- uuidctl bounds ksuid 2022-02-22T19:22:22Z --unit s
SELECT id FROM events WHERE id BETWEEN '25Tizqai8dy7gZWhgKgeA92cSTw' AND '25TizyNmArETm3CTQUTmx29sA63';

-- uuidctl bounds push_id 2022-02-22T19:22:22Z --unit s
SELECT id FROM events WHERE id BETWEEN '-MwXsbak------------' AND '-MwXsbqMzzzzzzzzzzzz';

-- v1 does not sort by time. uuid_v1 makes a v1 from a time. uuid_v1_time returns the time of a v1, to the
-- microsecond. uuid_v1_to_v6 returns the v6 with the time, clock sequence and node of a v1. A wrong argument is an
-- error.

CREATE FUNCTION uuid_v1(made timestamptz, clock_seq int, node macaddr) RETURNS uuid
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
  SELECT (substr(hex, 9, 8) || substr(hex, 5, 4)
          || CASE substr(hex, 1, 1) WHEN '0' THEN '1' ELSE ' time out of range ' END
          || substr(hex, 2, 3)
          || CASE WHEN clock_seq BETWEEN 0 AND 16383 THEN to_hex(32768 | clock_seq)
                  ELSE ' clock_seq is not 0 to 16383 ' END
          || replace(node::text, ':', ''))::uuid
  FROM (SELECT lpad(to_hex(10 * (1000000 * extract(epoch FROM date_trunc('minute', utc))::bigint
                                 + extract(microseconds FROM utc)::bigint)
                           + 122192928000000000), 16, '0') AS hex
        FROM (SELECT made AT TIME ZONE 'UTC' AS utc) AS given) AS ticks
$$;

CREATE FUNCTION uuid_v1_time(id uuid) RETURNS timestamptz
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
  SELECT (timestamp '1582-10-15' + us / 1000000 * interval '1 second'
          + us % 1000000 * interval '1 microsecond') AT TIME ZONE 'UTC'
  FROM (SELECT ('x' || substr(v1, 16, 3) || substr(v1, 10, 4) || substr(v1, 1, 8))::bit(60)::bigint
               / 10 AS us
        FROM (SELECT CASE substr(id::text, 15, 1) || translate(substr(id::text, 20, 1), '9ab', '888')
                     WHEN '18' THEN id ELSE (id || ' is not a v1')::uuid END::text AS v1) AS given) AS ticks
$$;

CREATE FUNCTION uuid_v1_to_v6(id uuid) RETURNS uuid
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
  SELECT CASE substr(v1, 15, 1) || translate(substr(v1, 20, 1), '9ab', '888')
         WHEN '18' THEN (substr(v1, 16, 3) || substr(v1, 10, 4) || substr(v1, 1, 5)
                         || '6' || substr(v1, 6, 3) || substr(v1, 20))::uuid
         ELSE (v1 || ' is not a v1')::uuid END
  FROM (SELECT id::text AS v1) AS given
$$;

SELECT uuid_v1('2022-02-22T19:22:22Z', 13256, '44:88:99:36:57:32');

-- An index on uuid_v1_time makes queries by time fast.

CREATE TABLE visits (id uuid PRIMARY KEY);
CREATE INDEX visits_by_time ON visits (uuid_v1_time(id));

SELECT id FROM visits
WHERE uuid_v1_time(id) >= '2022-02-22T19:22:22Z' AND uuid_v1_time(id) < '2022-02-22T19:22:23Z'
ORDER BY uuid_v1_time(id);
