-- Items of different roots wait on different keys for one path or pool: see InRoot in package store.
UPDATE items SET parked_on = parked_on || '@' || root WHERE stage = 2 AND root <> '' AND substr(parked_on, 1, 5) IN ('path:', 'pool:');
UPDATE items SET roused_by = roused_by || '@' || root WHERE stage = 1 AND root <> '' AND substr(roused_by, 1, 5) IN ('path:', 'pool:');
