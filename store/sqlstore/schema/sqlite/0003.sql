-- How many items are parked on locks: a release has nobody to tell when it is 0.
ALTER TABLE spaces ADD COLUMN parked INTEGER NOT NULL DEFAULT 0;

-- The queue: see Item.
CREATE TABLE items (
  seq           INTEGER PRIMARY KEY,      -- number of the event that queued it
  space         INTEGER NOT NULL,
  id            TEXT    NOT NULL,
  key           TEXT    NOT NULL,
  root          TEXT    NOT NULL,
  locks         TEXT    NOT NULL,
  body          TEXT    NOT NULL,         -- what else was asked for
  phase         TEXT    NOT NULL,
  pools         TEXT    NOT NULL,
  status        TEXT    NOT NULL,
  stage         INTEGER NOT NULL,         -- 1 is ready, 2 is parked, 3 is running
  standing      INTEGER NOT NULL,         -- 0 and 1: a lifecycle under way; 0 and 2: escalated
  rank          INTEGER NOT NULL,
  tag           INTEGER NOT NULL,
  parked_on     TEXT    NOT NULL COLLATE BINARY,
  roused_by     TEXT    NOT NULL,
  since         INTEGER NOT NULL,         -- lease clock
  leads         INTEGER NOT NULL,
  blocked       INTEGER NOT NULL,         -- nanoseconds
  due           INTEGER NOT NULL,         -- lease clock
  blockers      INTEGER NOT NULL,
  retries       INTEGER NOT NULL,
  attempts      INTEGER NOT NULL,
  grant_id      TEXT    NOT NULL,
  worker        TEXT    NOT NULL,
  slot          INTEGER NOT NULL,
  shuns         TEXT    NOT NULL,
  dispatched_at INTEGER NOT NULL,         -- wall clock, nanoseconds since 1970
  completed_at  INTEGER NOT NULL,
  note          TEXT    NOT NULL,
  failure       TEXT    NOT NULL
);
-- Each has a condition that only the questions meant for it repeat: no planner
-- can take one for an index of the space, as one did with that of commits when
-- all landings had been deleted.
CREATE UNIQUE INDEX items_id ON items (id, space + 0) WHERE id <> '';
CREATE UNIQUE INDEX items_key ON items (key, space + 0) WHERE key <> '';
CREATE INDEX items_status ON items (space + 0, status) WHERE status <> '';
CREATE INDEX items_ready ON items (space + 0, root, standing, rank, tag) WHERE stage = 1;
CREATE INDEX items_parked ON items (space + 0, parked_on, standing, rank, tag) WHERE stage = 2;
CREATE INDEX items_due ON items (space + 0, due) WHERE due > 0;

DROP INDEX landings_commit;
CREATE UNIQUE INDEX landings_commit ON landings (commit_id, space + 0) WHERE commit_id <> '';

CREATE TABLE pools (
  space INTEGER NOT NULL,
  name  TEXT    NOT NULL,
  taken INTEGER NOT NULL,                 -- slots
  PRIMARY KEY (space, name)
) WITHOUT ROWID;

CREATE TABLE turns (
  space   INTEGER NOT NULL,
  project TEXT    NOT NULL,
  rank    INTEGER NOT NULL,
  turn    INTEGER NOT NULL,               -- the last one that the project was given
  PRIMARY KEY (space, project, rank)
) WITHOUT ROWID;

CREATE TABLE workers (
  space   INTEGER NOT NULL,
  id      TEXT    NOT NULL COLLATE BINARY,
  body    TEXT    NOT NULL,
  expires INTEGER NOT NULL,               -- lease clock
  PRIMARY KEY (space, id)
) WITHOUT ROWID;
