-- One database file holds one space; tickets and event numbers are its own.
CREATE TABLE spaces (
  key          INTEGER PRIMARY KEY,
  id           TEXT    NOT NULL UNIQUE,
  seq          INTEGER NOT NULL,          -- the last event number given
  incarnation  TEXT    NOT NULL,          -- which physical database gave the numbers
  boot         TEXT    NOT NULL,          -- boot id the leases are counted in
  created_at   INTEGER NOT NULL
);

CREATE TABLE requests (
  ticket       INTEGER PRIMARY KEY,
  space        INTEGER NOT NULL,
  id           TEXT    NOT NULL UNIQUE,
  holder       TEXT    NOT NULL,
  policy       TEXT    NOT NULL,
  token        BLOB    NOT NULL,          -- SHA-256 of the secret
  state        INTEGER NOT NULL,
  fence        INTEGER NOT NULL,
  ttl          INTEGER NOT NULL,          -- nanoseconds, as are the lease times
  expires      INTEGER NOT NULL,
  heartbeat    INTEGER NOT NULL,
  acquired_at  INTEGER NOT NULL,          -- wall clock, nanoseconds since 1970
  expires_at   INTEGER NOT NULL,
  heartbeat_at INTEGER NOT NULL,
  parked_on    INTEGER NOT NULL,
  blockers     INTEGER NOT NULL,
  process      TEXT    NOT NULL,
  metadata     TEXT    NOT NULL,
  locks        TEXT    NOT NULL
);
CREATE INDEX requests_parked ON requests (space, parked_on) WHERE parked_on > 0;

CREATE TABLE targets (
  space  INTEGER NOT NULL,
  path   TEXT    NOT NULL COLLATE BINARY,
  ticket INTEGER NOT NULL,
  mode   INTEGER NOT NULL,
  kind   INTEGER NOT NULL,
  PRIMARY KEY (space, path, ticket)
) WITHOUT ROWID;

CREATE TABLE events (
  seq   INTEGER PRIMARY KEY,
  space INTEGER NOT NULL,
  at    INTEGER NOT NULL,
  body  TEXT    NOT NULL
);

CREATE TABLE denials (
  space  INTEGER NOT NULL,
  key    TEXT    NOT NULL,
  digest INTEGER NOT NULL,
  at     INTEGER NOT NULL,
  PRIMARY KEY (space, key)
) WITHOUT ROWID;

CREATE TABLE claims (
  space   INTEGER NOT NULL,
  holder  TEXT    NOT NULL,
  id      TEXT    NOT NULL,
  process TEXT    NOT NULL,
  expires INTEGER NOT NULL,
  PRIMARY KEY (space, id)
) WITHOUT ROWID;
CREATE INDEX claims_holder ON claims (space, holder);

-- The lock table in the form of the concurrency specification: one row for
-- each grant, its targets listed in metadata. It is for reading; only the
-- engine changes what is behind it.
CREATE VIEW dal_locks AS
SELECT id AS lock_id,
       holder AS owner,
       CASE expires_at WHEN 0 THEN NULL ELSE strftime('%Y-%m-%dT%H:%M:%fZ', expires_at / 1e9, 'unixepoch') END AS lease_expires,
       strftime('%Y-%m-%dT%H:%M:%fZ', heartbeat_at / 1e9, 'unixepoch') AS heartbeat_ts,
       json_object('targets', json(locks), 'policy', policy, 'fence', fence, 'caller', json(metadata)) AS metadata
  FROM requests
 WHERE state <> 1;
