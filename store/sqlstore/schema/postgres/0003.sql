-- What reached the tree, or was decided to: see Landing.
CREATE TABLE landings (
  space     BIGINT NOT NULL,
  seq       BIGINT NOT NULL,           -- number of the event that decided it
  commit_id TEXT   NOT NULL COLLATE "C",
  grant_id  TEXT   NOT NULL COLLATE "C",
  holder    TEXT   NOT NULL,
  fence     BIGINT NOT NULL,
  site      TEXT   NOT NULL,
  state     BIGINT NOT NULL,           -- 1 is decided
  at        BIGINT NOT NULL,           -- wall clock, nanoseconds since 1970
  made      TEXT   NOT NULL,
  clears    TEXT   NOT NULL,
  draft     TEXT   NOT NULL,
  undoes    BIGINT NOT NULL,
  taker     TEXT   NOT NULL,           -- who brings it to its end
  PRIMARY KEY (space, seq)
);
-- Nothing but its primary key can be taken for an index of the space: a planner
-- that takes the table for small would read all of it.
CREATE UNIQUE INDEX landings_commit ON landings (commit_id, (space + 0));
CREATE INDEX landings_open ON landings (grant_id, (space + 0)) WHERE state = 1;

CREATE TABLE changes (
  space   BIGINT NOT NULL,
  landing BIGINT NOT NULL,
  n       BIGINT NOT NULL,             -- its place in the landing
  path    TEXT   NOT NULL COLLATE "C",
  old     TEXT   NOT NULL,
  new     TEXT   NOT NULL,
  PRIMARY KEY (landing, space, n)      -- in this order, lest it be taken for an index of the space
);
CREATE UNIQUE INDEX changes_path ON changes (space, path, landing);
