-- The first number of the current epoch.
ALTER TABLE spaces ADD COLUMN epoch INTEGER NOT NULL DEFAULT 0;
UPDATE spaces SET epoch = seq / 268435456 * 268435456;
