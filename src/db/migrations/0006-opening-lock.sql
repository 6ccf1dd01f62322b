-- One row per hash bucket of client networks. A unit that opens an order locks its network's row until the
-- commit, so that it counts all open orders of the network.
create table opening_lock (
  bucket integer primary key
);
