-- Values that several machines share: see Board in package store.
CREATE SEQUENCE post_versions;
CREATE TABLE posts (
	space   bigint NOT NULL REFERENCES spaces (key) ON DELETE CASCADE,
	kind    text NOT NULL,
	key     text NOT NULL,
	version bigint NOT NULL,
	body    text NOT NULL,
	expires bigint NOT NULL, -- nanoseconds; 0: never
	at      bigint NOT NULL,
	PRIMARY KEY (space, kind, key)
);
