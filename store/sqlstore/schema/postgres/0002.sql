-- The planner took the key of ids for an index of the space when a vacuum had
-- found the table empty. The expression keeps it from that.
ALTER TABLE requests DROP CONSTRAINT requests_id_space_key;
CREATE UNIQUE INDEX requests_id ON requests (id, (space + 0));

-- admit and dismiss become procedures. They count first and take it back when
-- something is in the way, where a lock on the row and a second statement to
-- count were before; a busy space does not stand still while a grant is written
-- to disk; and values are looked up by subplans, which cost half of a join.
DROP FUNCTION admit;
DROP FUNCTION dismiss;

CREATE PROCEDURE admit(
  p_space BIGINT, p_last BIGINT, p_now BIGINT, p_wall BIGINT, p_id TEXT, p_holder TEXT, p_policy TEXT, p_token BYTEA, p_ttl BIGINT,
  p_process TEXT, p_metadata TEXT, p_locks TEXT, p_event TEXT, p_wide BIGINT,
  p_at TEXT[], p_exact BIGINT[], p_above BIGINT[],      -- the asked paths and all above them
  p_lo TEXT[], p_hi TEXT[], p_below BIGINT[],           -- what lies below the asked paths
  p_paths TEXT[], p_modes BIGINT[], p_kinds BIGINT[],
  INOUT given BIGINT, INOUT at_ns BIGINT
) LANGUAGE plpgsql AS $$
BEGIN
  UPDATE spaces SET seq = seq + 1 WHERE key = p_space RETURNING seq INTO given;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'space is gone' USING ERRCODE = 'LK404';
  END IF;
  IF EXISTS (
    SELECT 1 FROM denials WHERE space = p_space AND key = 'called off ' || p_id
  ) OR EXISTS (
    SELECT 1 FROM (SELECT unnest(p_at) AS path, unnest(p_exact) AS exact, unnest(p_above) AS above OFFSET 0) AS a
     WHERE EXISTS (SELECT 1 FROM targets AS t WHERE t.space = p_space AND t.path = a.path
                      AND (1 << t.mode::int) & (a.exact | CASE WHEN (1 << t.kind::int) & p_wide <> 0 THEN a.above ELSE 0 END) <> 0 OFFSET 0)
  ) OR EXISTS (
    SELECT 1 FROM (SELECT unnest(p_lo) AS lo, unnest(p_hi) AS hi, unnest(p_below) AS mask OFFSET 0) AS b
     WHERE EXISTS (SELECT 1 FROM targets AS t WHERE t.space = p_space AND t.path > b.lo AND t.path < b.hi
                      AND (1 << t.mode::int) & b.mask <> 0 OFFSET 0)
  ) THEN
    ROLLBACK;
    given := 0;
    at_ns := 0;
    RETURN;
  END IF;
  at_ns := coalesce(p_now, (extract(epoch FROM clock_timestamp()) * 1000000)::BIGINT * 1000);
  p_wall := coalesce(p_wall, at_ns);
  INSERT INTO events (space, seq, at, body) VALUES (p_space, given, p_wall, p_event);
  INSERT INTO requests (space, ticket, id, holder, policy, token, state, fence, ttl, expires, heartbeat,
                        acquired_at, expires_at, heartbeat_at, parked_on, blockers, process, metadata, locks)
  VALUES (p_space, given, p_id, p_holder, p_policy, p_token, 3, given, p_ttl,
          CASE p_ttl WHEN 0 THEN 0 ELSE at_ns + p_ttl END, at_ns,
          p_wall, CASE p_ttl WHEN 0 THEN 0 ELSE p_wall + p_ttl END, p_wall, 0, 0, p_process, p_metadata, p_locks);
  INSERT INTO targets (space, path, ticket, mode, kind)
  SELECT p_space, unnest(p_paths), given, unnest(p_modes), unnest(p_kinds);
  IF given <> p_last + 1 THEN
    -- Others work in this space, too: the next is let in before the disk has the
    -- grant. The caller is told of it when the disk has it, because the flush of a
    -- transaction takes all before it along; this one is there for nothing else.
    SET LOCAL synchronous_commit = off;
    COMMIT;
    PERFORM pg_logical_emit_message(true, 'lockkeeper', '');
  END IF;
END $$;

CREATE PROCEDURE dismiss(p_space BIGINT, p_wall BIGINT, p_id TEXT, p_token BYTEA, p_kind TEXT, p_actor TEXT, INOUT given BIGINT)
LANGUAGE plpgsql AS $$
DECLARE
  gone RECORD;
  h    TEXT;
BEGIN
  UPDATE spaces SET seq = seq + 1 WHERE key = p_space RETURNING seq INTO given;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'space is gone' USING ERRCODE = 'LK404';
  END IF;
  DELETE FROM requests AS r
   WHERE r.id = p_id AND r.space + 0 = p_space AND r.token = p_token AND r.state = 3 AND r.process = 'null'
     AND NOT EXISTS (SELECT 1 FROM requests AS w WHERE w.space = p_space AND w.parked_on = r.ticket AND w.parked_on > 0 OFFSET 0)
  RETURNING r.ticket, r.holder, r.locks INTO gone;
  IF NOT FOUND THEN
    ROLLBACK;
    given := 0;
    RETURN;
  END IF;
  p_wall := coalesce(p_wall, (extract(epoch FROM clock_timestamp()) * 1000000)::BIGINT * 1000);
  h := to_json(gone.holder)::text;
  INSERT INTO events (space, seq, at, body) VALUES (p_space, given, p_wall,
    '{"kind":"' || p_kind || '","actor":{"name":' || h || ',"kind":"' || p_actor || '"},"grant_id":' || to_json(p_id)::text ||
    ',"holder":' || h || ',"locks":' || gone.locks || '}');
  DELETE FROM targets WHERE ctid = ANY (ARRAY(
    SELECT t.ctid FROM json_array_elements(gone.locks::json) AS l
      CROSS JOIN LATERAL (SELECT targets.ctid FROM targets
                           WHERE targets.space = p_space AND targets.path = l ->> 'path' AND targets.ticket = gone.ticket OFFSET 0) AS t));
  -- Nobody has to wait for the disk: a release that a crash of the server undoes
  -- leaves a lock to its lease, and whatever is granted after it is flushed with
  -- it.
  SET LOCAL synchronous_commit = off;
END $$;
