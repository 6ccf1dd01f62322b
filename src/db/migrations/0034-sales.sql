-- One row for each settled order. It outlives the order's row, for the operator's books, and holds nothing of
-- the buyer. `network` is the Lightning network: mainnet, regtest or signet.
create table sale (
  payment_hash text primary key,
  settled_at integer not null,
  product text not null,
  plan_id text not null,
  amount_sats integer not null,
  network text not null
);
create index sale_by_time on sale (settled_at, payment_hash);

insert into sale (payment_hash, settled_at, product, plan_id, amount_sats, network)
  select payment_hash, settled_at, product, plan_id, amount_sats, network from purchase_order
  where state = 'settled' and payment_hash is not null and settled_at is not null
    and network is not null;
