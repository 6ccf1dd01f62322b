-- The client who opened an order: a keyed hash of its exact address, '' if the address was unknown. Null for
-- orders from before this column, which are never contested.
alter table purchase_order add column opened_by text;

-- Whether a guessable key of this order was used from another address: 0 no, 1 after its payment was
-- seen, 2 before. A delivery requires `contested <= …`.
alter table purchase_order add column contested integer not null default 0;

-- What ended the replay: 'use' of a token, or 'age'. Null for orders that were sealed before this column.
alter table purchase_order add column sealed_by text;

-- A key that came with the credential of another order, and names that order from then on.
create table order_alias (
  alias_id text primary key,       -- the order id that the key stands for
  order_id text not null,
  key_hash blob not null,          -- HMAC of the Idempotency-Key
  created_at integer not null
);
create index order_alias_by_order on order_alias (order_id);

-- What remains of an order after its row was deleted.
create table order_tombstone (
  payment_hash text primary key,
  ended text not null,             -- used | aged | dead
  ended_at integer not null        -- when the row was deleted
);
create index order_tombstone_dead on order_tombstone (ended_at) where ended = 'dead';
