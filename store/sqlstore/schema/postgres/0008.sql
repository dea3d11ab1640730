-- Numbers continue in a new epoch whenever another server may have lost some: after every start of a
-- server, a promotion, and a restore of any kind. Every transaction that gives a number compares, because the
-- server may change between two transactions of one connection to a pooler.
ALTER TABLE spaces ADD COLUMN epoch BIGINT NOT NULL DEFAULT 0; -- the first number of the current epoch
UPDATE spaces SET epoch = seq / 268435456 * 268435456;

-- The history of one server from its start on has no gap. The timeline is that of the current WAL: the one of
-- the last checkpoint is old for some time after a promotion. Some managed services do not tell it.
CREATE FUNCTION incarnation() RETURNS TEXT LANGUAGE plpgsql STABLE AS $$
DECLARE
  timeline TEXT := '';
BEGIN
  IF NOT pg_is_in_recovery() THEN
    BEGIN
      timeline := substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8);
    EXCEPTION WHEN insufficient_privilege OR feature_not_supported OR undefined_function THEN
      NULL;
    END;
  END IF;
  RETURN concat_ws(':', (extract(epoch FROM pg_postmaster_start_time()) * 1000000)::BIGINT, timeline,
    pg_relation_filepath('lockkeeper.spaces'));
END $$;

-- A row that comes from a dump has numbers of an earlier time.
CREATE FUNCTION restored() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
  NEW.incarnation := 'restored';
  RETURN NEW;
END $$;
CREATE TRIGGER restored BEFORE INSERT ON spaces FOR EACH ROW EXECUTE FUNCTION lockkeeper.restored();

DROP PROCEDURE admit;
DROP PROCEDURE dismiss;

-- admit, dismiss and renew are the most frequent transactions in one round trip each, if nothing stands in their
-- way. They leave the rest to the engine's own transaction.
CREATE PROCEDURE admit(
  p_space BIGINT, p_last BIGINT, p_now BIGINT, p_wall BIGINT, p_id TEXT, p_holder TEXT, p_policy TEXT, p_token BYTEA, p_ttl BIGINT,
  p_process TEXT, p_metadata TEXT, p_locks TEXT, p_event TEXT, p_wide BIGINT,
  p_at TEXT[], p_exact BIGINT[], p_above BIGINT[],      -- the requested paths and all above them
  p_lo TEXT[], p_hi TEXT[], p_below BIGINT[],           -- the ranges below the requested paths
  p_paths TEXT[], p_modes BIGINT[], p_kinds BIGINT[],
  INOUT given BIGINT, INOUT at_ns BIGINT
) LANGUAGE plpgsql AS $$
BEGIN
  UPDATE spaces SET seq = seq + 1 WHERE key = p_space AND seq >= p_last AND incarnation = incarnation() RETURNING seq INTO given;
  IF NOT FOUND THEN
    IF NOT EXISTS (SELECT 1 FROM spaces WHERE key = p_space) THEN
      RAISE EXCEPTION 'space is gone' USING ERRCODE = 'LK404';
    END IF;
    given := 0; -- the engine's own transaction starts a new epoch
    at_ns := 0;
    RETURN;
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
    -- Others work in this space, too: the next request is admitted before the disk has the grant. The caller
    -- learns of the grant when the disk has it, because the flush of a transaction includes all before it. This
    -- transaction does nothing else.
    SET LOCAL synchronous_commit = off;
    COMMIT;
    PERFORM pg_logical_emit_message(true, 'lockkeeper', '');
  END IF;
END $$;

CREATE PROCEDURE dismiss(p_space BIGINT, p_wall BIGINT, p_id TEXT, p_token BYTEA, p_kind TEXT, p_actor TEXT, p_channel TEXT, INOUT given BIGINT)
LANGUAGE plpgsql AS $$
DECLARE
  gone     RECORD;
  h        TEXT;
  on_locks BIGINT;
BEGIN
  UPDATE spaces SET seq = seq + 1 WHERE key = p_space AND incarnation = incarnation() RETURNING seq, parked INTO given, on_locks;
  IF NOT FOUND THEN
    IF NOT EXISTS (SELECT 1 FROM spaces WHERE key = p_space) THEN
      RAISE EXCEPTION 'space is gone' USING ERRCODE = 'LK404';
    END IF;
    given := 0;
    RETURN;
  END IF;
  IF on_locks = 0 THEN
    -- The events of an item's grant name the item, which the engine adds.
    DELETE FROM requests AS r
     WHERE r.id = p_id AND r.space + 0 = p_space AND r.token = p_token AND r.state = 3 AND r.metadata::json ->> 'item' IS NULL
       AND NOT EXISTS (SELECT 1 FROM requests AS w WHERE w.space = p_space AND w.parked_on = r.ticket AND w.parked_on > 0 OFFSET 0)
    RETURNING r.ticket, r.holder, r.locks, r.process INTO gone;
  END IF;
  IF on_locks <> 0 OR NOT FOUND THEN
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
  -- Nobody waits for the disk: a release that a crash of the server undoes leaves a lock to its lease, and
  -- every later grant is flushed with it.
  SET LOCAL synchronous_commit = off;
  IF gone.process <> 'null' THEN -- its supervisor may listen; a notification inside the transaction would make commits of all spaces wait
    COMMIT;
    SET LOCAL synchronous_commit = off;
    PERFORM pg_notify(p_channel, p_id);
  END IF;
END $$;

-- renew starts the lease of a live grant again if p_lease is set, and records its process if p_process is not null. It
-- locks the space first, as every change does, so that it and a recovery of the grant exclude each other.
CREATE FUNCTION renew(p_space BIGINT, p_now BIGINT, p_wall BIGINT, p_id TEXT, p_token BYTEA, p_lease BOOLEAN, p_process TEXT)
RETURNS SETOF requests LANGUAGE plpgsql AS $$
BEGIN
  PERFORM 1 FROM spaces WHERE key = p_space AND incarnation = incarnation() FOR UPDATE;
  IF NOT FOUND THEN
    RETURN;
  END IF;
  p_now := coalesce(p_now, (extract(epoch FROM clock_timestamp()) * 1000000)::BIGINT * 1000);
  p_wall := coalesce(p_wall, p_now);
  RETURN QUERY
    UPDATE requests AS r
       SET process = coalesce(p_process, r.process),
           heartbeat = CASE WHEN p_lease THEN p_now ELSE r.heartbeat END,
           heartbeat_at = CASE WHEN p_lease THEN p_wall ELSE r.heartbeat_at END,
           expires = CASE WHEN NOT p_lease THEN r.expires WHEN r.ttl = 0 THEN 0 ELSE p_now + r.ttl END,
           expires_at = CASE WHEN NOT p_lease THEN r.expires_at WHEN r.ttl = 0 THEN 0 ELSE p_wall + r.ttl END
     WHERE r.id = p_id AND r.space + 0 = p_space AND r.token = p_token AND r.state IN (3, 4) AND (r.expires = 0 OR r.expires > p_now)
    RETURNING r.*;
END $$;
