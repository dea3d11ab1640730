-- What reached the tree, or was decided to: see Landing.
CREATE TABLE landings (
  seq       INTEGER PRIMARY KEY,       -- number of the event that decided it
  space     INTEGER NOT NULL,
  commit_id TEXT    NOT NULL,
  grant_id  TEXT    NOT NULL,
  holder    TEXT    NOT NULL,
  fence     INTEGER NOT NULL,
  site      TEXT    NOT NULL,
  state     INTEGER NOT NULL,          -- 1 is decided
  at        INTEGER NOT NULL,          -- wall clock, nanoseconds since 1970
  made      TEXT    NOT NULL,
  clears    TEXT    NOT NULL,
  draft     TEXT    NOT NULL,
  undoes    INTEGER NOT NULL,
  taker     TEXT    NOT NULL           -- who brings it to its end
);
CREATE UNIQUE INDEX landings_commit ON landings (commit_id, space + 0);
CREATE INDEX landings_open ON landings (grant_id, space + 0) WHERE state = 1;

CREATE TABLE changes (
  space   INTEGER NOT NULL,
  landing INTEGER NOT NULL,
  n       INTEGER NOT NULL,            -- its place in the landing
  path    TEXT    NOT NULL COLLATE BINARY,
  old     TEXT    NOT NULL,
  new     TEXT    NOT NULL,
  PRIMARY KEY (landing, space, n)      -- in this order, lest it be taken for an index of the space
) WITHOUT ROWID;
CREATE UNIQUE INDEX changes_path ON changes (space, path, landing);
