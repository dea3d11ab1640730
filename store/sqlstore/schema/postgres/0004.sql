-- How many items are parked on locks: a release has nobody to tell when it is 0.
ALTER TABLE spaces ADD COLUMN parked BIGINT NOT NULL DEFAULT 0;

-- The queue: see Item.
CREATE TABLE items (
  space         BIGINT  NOT NULL,
  seq           BIGINT  NOT NULL,         -- number of the event that queued it
  id            TEXT    NOT NULL COLLATE "C",
  key           TEXT    NOT NULL COLLATE "C",
  root          TEXT    NOT NULL COLLATE "C",
  locks         TEXT    NOT NULL,
  body          TEXT    NOT NULL,         -- what else was asked for
  phase         TEXT    NOT NULL,
  pools         TEXT    NOT NULL,
  status        TEXT    NOT NULL COLLATE "C",
  stage         BIGINT  NOT NULL,         -- 1 is ready, 2 is parked, 3 is running
  standing      BIGINT  NOT NULL,         -- 0 and 1: a lifecycle under way; 0 and 2: escalated
  rank          BIGINT  NOT NULL,
  tag           BIGINT  NOT NULL,
  parked_on     TEXT    NOT NULL COLLATE "C",
  roused_by     TEXT    NOT NULL,
  since         BIGINT  NOT NULL,         -- lease clock
  leads         BIGINT  NOT NULL,
  blocked       BIGINT  NOT NULL,         -- nanoseconds
  due           BIGINT  NOT NULL,         -- lease clock
  blockers      BIGINT  NOT NULL,
  retries       BIGINT  NOT NULL,
  attempts      BIGINT  NOT NULL,
  grant_id      TEXT    NOT NULL,
  worker        TEXT    NOT NULL,
  slot          BIGINT  NOT NULL,
  shuns         TEXT    NOT NULL,
  dispatched_at BIGINT  NOT NULL,         -- wall clock, nanoseconds since 1970
  completed_at  BIGINT  NOT NULL,
  note          TEXT    NOT NULL,
  failure       TEXT    NOT NULL,
  PRIMARY KEY (space, seq)
);
-- Each has a condition that only the questions meant for it repeat: no planner
-- can take one for an index of the space, as one did with that of commits when
-- all landings had been deleted.
CREATE UNIQUE INDEX items_id ON items (id, (space + 0)) WHERE id <> '';
CREATE UNIQUE INDEX items_key ON items (key, (space + 0)) WHERE key <> '';
CREATE INDEX items_status ON items ((space + 0), status, seq) WHERE status <> '';
CREATE INDEX items_ready ON items ((space + 0), root, standing, rank, tag, seq) WHERE stage = 1;
CREATE INDEX items_parked ON items ((space + 0), parked_on, standing, rank, tag, seq) WHERE stage = 2;
CREATE INDEX items_due ON items ((space + 0), due, seq) WHERE due > 0;

DROP INDEX landings_commit;
CREATE UNIQUE INDEX landings_commit ON landings (commit_id, (space + 0)) WHERE commit_id <> '';

CREATE TABLE pools (
  space BIGINT  NOT NULL,
  name  TEXT    NOT NULL COLLATE "C",
  taken BIGINT  NOT NULL,                 -- slots
  PRIMARY KEY (space, name)
);

CREATE TABLE turns (
  space   BIGINT  NOT NULL,
  project TEXT    NOT NULL COLLATE "C",
  rank    BIGINT  NOT NULL,
  turn    BIGINT  NOT NULL,               -- the last one that the project was given
  PRIMARY KEY (space, project, rank)
);

CREATE TABLE workers (
  space   BIGINT  NOT NULL,
  id      TEXT    NOT NULL COLLATE "C",
  body    TEXT    NOT NULL,
  expires BIGINT  NOT NULL,               -- lease clock
  PRIMARY KEY (space, id)
);

-- Whoever releases a lock that items may be parked on makes one of them ready,
-- which is left to the engine's own transaction.
CREATE OR REPLACE PROCEDURE dismiss(p_space BIGINT, p_wall BIGINT, p_id TEXT, p_token BYTEA, p_kind TEXT, p_actor TEXT, INOUT given BIGINT)
LANGUAGE plpgsql AS $$
DECLARE
  gone     RECORD;
  h        TEXT;
  on_locks BIGINT;
BEGIN
  UPDATE spaces SET seq = seq + 1 WHERE key = p_space RETURNING seq, parked INTO given, on_locks;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'space is gone' USING ERRCODE = 'LK404';
  END IF;
  IF on_locks = 0 THEN
    DELETE FROM requests AS r
     WHERE r.id = p_id AND r.space + 0 = p_space AND r.token = p_token AND r.state = 3 AND r.process = 'null'
       AND NOT EXISTS (SELECT 1 FROM requests AS w WHERE w.space = p_space AND w.parked_on = r.ticket AND w.parked_on > 0 OFFSET 0)
    RETURNING r.ticket, r.holder, r.locks INTO gone;
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
  -- Nobody has to wait for the disk: a release that a crash of the server undoes
  -- leaves a lock to its lease, and whatever is granted after it is flushed with
  -- it.
  SET LOCAL synchronous_commit = off;
END $$;
