CREATE TABLE spaces (
  key          BIGINT  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id           TEXT    NOT NULL UNIQUE,
  seq          BIGINT  NOT NULL,          -- the last event number given
  incarnation  TEXT    NOT NULL,          -- which physical database gave the numbers
  created_at   BIGINT  NOT NULL
);

CREATE TABLE requests (
  space        BIGINT  NOT NULL,
  ticket       BIGINT  NOT NULL,
  id           TEXT    NOT NULL COLLATE "C",
  holder       TEXT    NOT NULL,
  policy       TEXT    NOT NULL,
  token        BYTEA   NOT NULL,          -- SHA-256 of the secret
  state        BIGINT  NOT NULL,
  fence        BIGINT  NOT NULL,
  ttl          BIGINT  NOT NULL,          -- nanoseconds, as are the lease times
  expires      BIGINT  NOT NULL,
  heartbeat    BIGINT  NOT NULL,
  acquired_at  BIGINT  NOT NULL,          -- wall clock, nanoseconds since 1970
  expires_at   BIGINT  NOT NULL,
  heartbeat_at BIGINT  NOT NULL,
  parked_on    BIGINT  NOT NULL,
  blockers     BIGINT  NOT NULL,
  process      TEXT    NOT NULL,
  metadata     TEXT    NOT NULL,
  locks        TEXT    NOT NULL,
  PRIMARY KEY (space, ticket),
  UNIQUE (id, space)                      -- in this order, lest it be taken for an index of the space
);
CREATE INDEX requests_parked ON requests (space, parked_on) WHERE parked_on > 0;

CREATE TABLE targets (
  space  BIGINT NOT NULL,
  path   TEXT   NOT NULL COLLATE "C",
  ticket BIGINT NOT NULL,
  mode   BIGINT NOT NULL,
  kind   BIGINT NOT NULL,
  PRIMARY KEY (space, path, ticket)
);

CREATE TABLE events (
  space BIGINT NOT NULL,
  seq   BIGINT NOT NULL,
  at    BIGINT NOT NULL,
  body  TEXT   NOT NULL,
  PRIMARY KEY (space, seq)
);

CREATE TABLE denials (
  space  BIGINT NOT NULL,
  key    TEXT   NOT NULL COLLATE "C",
  digest BIGINT NOT NULL,
  at     BIGINT NOT NULL,
  PRIMARY KEY (space, key)
);

CREATE TABLE claims (
  space   BIGINT NOT NULL,
  holder  TEXT   NOT NULL,
  id      TEXT   NOT NULL COLLATE "C",
  process TEXT   NOT NULL,
  expires BIGINT NOT NULL,
  PRIMARY KEY (space, id)
);
CREATE INDEX claims_holder ON claims (space, holder);

-- The lock table in the form of the concurrency specification: one row for
-- each grant, its targets listed in metadata. It is for reading; only the
-- engine changes what is behind it.
CREATE VIEW dal_locks AS
SELECT id AS lock_id,
       holder AS owner,
       CASE expires_at WHEN 0 THEN NULL
            ELSE to_char(to_timestamp(expires_at / 1e9) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') END AS lease_expires,
       to_char(to_timestamp(heartbeat_at / 1e9) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS heartbeat_ts,
       json_build_object('targets', locks::json, 'policy', policy, 'fence', fence, 'caller', metadata::json) AS metadata
  FROM requests
 WHERE state <> 1;

-- admit and dismiss are the two commonest steps as one round trip, for when
-- nobody stands in the way. They know no rule of their own: which modes
-- exclude which, and which kinds cover what is below, is handed in as masks
-- (bits 1 << mode, 1 << kind), and whatever is not plainly free is left to the
-- engine's own transaction. State 3 is held.

CREATE FUNCTION admit(
  p_space BIGINT, p_now BIGINT, p_wall BIGINT, p_id TEXT, p_holder TEXT, p_policy TEXT, p_token BYTEA, p_ttl BIGINT,
  p_process TEXT, p_metadata TEXT, p_locks TEXT, p_event TEXT, p_wide BIGINT,
  p_at TEXT[], p_exact BIGINT[], p_above BIGINT[],      -- the asked paths and all above them
  p_lo TEXT[], p_hi TEXT[], p_below BIGINT[],           -- what lies below the asked paths
  p_paths TEXT[], p_modes BIGINT[], p_kinds BIGINT[]
) RETURNS TABLE (given BIGINT, at_ns BIGINT) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  s BIGINT;
  n BIGINT;
  w BIGINT;
BEGIN
  SELECT spaces.seq INTO s FROM spaces WHERE spaces.key = p_space FOR UPDATE;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'space is gone' USING ERRCODE = 'LK404';
  END IF;
  IF EXISTS (
    SELECT 1 FROM denials WHERE denials.space = p_space AND denials.key = 'called off ' || p_id
  ) OR EXISTS (
    SELECT 1 FROM unnest(p_at, p_exact, p_above) AS a (path, exact, above)
      CROSS JOIN LATERAL (SELECT targets.mode, targets.kind FROM targets
                           WHERE targets.space = p_space AND targets.path = a.path OFFSET 0) AS t
     WHERE ((1 << t.mode::int) & (a.exact | CASE WHEN (1 << t.kind::int) & p_wide <> 0 THEN a.above ELSE 0 END)) <> 0
  ) OR EXISTS (
    SELECT 1 FROM unnest(p_lo, p_hi, p_below) AS b (lo, hi, mask)
      CROSS JOIN LATERAL (SELECT targets.mode FROM targets
                           WHERE targets.space = p_space AND targets.path > b.lo AND targets.path < b.hi OFFSET 0) AS t
     WHERE ((1 << t.mode::int) & b.mask) <> 0
  ) THEN
    RETURN QUERY SELECT 0::BIGINT, 0::BIGINT;
    RETURN;
  END IF;
  n := coalesce(p_now, (extract(epoch FROM clock_timestamp()) * 1000000)::BIGINT * 1000);
  w := coalesce(p_wall, n);
  s := s + 1;
  UPDATE spaces SET seq = s WHERE spaces.key = p_space;
  INSERT INTO events (space, seq, at, body) VALUES (p_space, s, w, p_event);
  INSERT INTO requests (space, ticket, id, holder, policy, token, state, fence, ttl, expires, heartbeat,
                        acquired_at, expires_at, heartbeat_at, parked_on, blockers, process, metadata, locks)
  VALUES (p_space, s, p_id, p_holder, p_policy, p_token, 3, s, p_ttl,
          CASE p_ttl WHEN 0 THEN 0 ELSE n + p_ttl END, n,
          w, CASE p_ttl WHEN 0 THEN 0 ELSE w + p_ttl END, w, 0, 0, p_process, p_metadata, p_locks);
  INSERT INTO targets (space, path, ticket, mode, kind)
  SELECT p_space, l.path, s, l.mode, l.kind FROM unnest(p_paths, p_modes, p_kinds) AS l (path, mode, kind);
  RETURN QUERY SELECT s, n;
END $$;

CREATE FUNCTION dismiss(p_space BIGINT, p_wall BIGINT, p_id TEXT, p_token BYTEA, p_kind TEXT, p_actor TEXT)
RETURNS BIGINT LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  s BIGINT;
  w BIGINT;
  r RECORD;
  h TEXT;
BEGIN
  SELECT spaces.seq INTO s FROM spaces WHERE spaces.key = p_space FOR UPDATE;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'space is gone' USING ERRCODE = 'LK404';
  END IF;
  SELECT requests.ticket, requests.holder, requests.locks INTO r FROM requests
   WHERE requests.id = p_id AND requests.space + 0 = p_space AND requests.token = p_token
     AND requests.state = 3 AND requests.process = 'null';
  IF NOT FOUND OR EXISTS (SELECT 1 FROM requests WHERE requests.space = p_space AND requests.parked_on = r.ticket AND requests.parked_on > 0) THEN
    RETURN 0;
  END IF;
  w := coalesce(p_wall, (extract(epoch FROM clock_timestamp()) * 1000000)::BIGINT * 1000);
  s := s + 1;
  UPDATE spaces SET seq = s WHERE spaces.key = p_space;
  h := to_json(r.holder)::text;
  INSERT INTO events (space, seq, at, body) VALUES (p_space, s, w,
    '{"kind":"' || p_kind || '","actor":{"name":' || h || ',"kind":"' || p_actor || '"},"grant_id":' || to_json(p_id)::text ||
    ',"holder":' || h || ',"locks":' || r.locks || '}');
  DELETE FROM targets WHERE targets.ctid = ANY (ARRAY(
    SELECT t.ctid FROM json_array_elements(r.locks::json) AS l
      CROSS JOIN LATERAL (SELECT targets.ctid FROM targets
                           WHERE targets.space = p_space AND targets.path = l ->> 'path' AND targets.ticket = r.ticket OFFSET 0) AS t));
  DELETE FROM requests WHERE requests.space = p_space AND requests.ticket = r.ticket;
  -- Nobody has to wait for the disk: a release that a crash of the server undoes
  -- leaves a lock to its lease, and whatever is granted after it is flushed with
  -- it.
  PERFORM set_config('synchronous_commit', 'off', true);
  RETURN s;
END $$;
