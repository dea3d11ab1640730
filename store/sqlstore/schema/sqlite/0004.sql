-- In a rank the items with the longest chain of work behind them come first: see Item.Place.
ALTER TABLE items ADD COLUMN place INTEGER NOT NULL DEFAULT 0;
ALTER TABLE items ADD COLUMN chain INTEGER NOT NULL DEFAULT 0; -- nanoseconds
UPDATE items SET place = tag / 64 * 68719476736 WHERE standing IN (1, 3);

DROP INDEX items_ready;
DROP INDEX items_parked;
CREATE INDEX items_ready ON items (space + 0, root, standing, rank, place, tag) WHERE stage = 1;
CREATE INDEX items_parked ON items (space + 0, parked_on, standing, rank, place, tag) WHERE stage = 2;
