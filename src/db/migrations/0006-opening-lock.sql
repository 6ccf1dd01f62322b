-- Client networks by a hash of 256: who opens an order holds its network's row until the commit, so
-- that the orders it counts are all there are.
create table opening_lock (
  bucket integer primary key
);
