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
  id           TEXT    NOT NULL COLLATE "C" UNIQUE,
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
  PRIMARY KEY (space, ticket)
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
