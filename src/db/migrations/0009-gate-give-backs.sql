-- If the project's server failed a request, its receipt is given back, and a new one is made when the payer
-- repeats the request. The row has the newest receipt; `give_backs` counts the earlier ones.
alter table gate_receipt add column give_backs integer not null default 0;
alter table gate_receipt add column given_back_at integer;

-- Every receipt that was given back, so that a repeated give-back is recognised.
create table gate_give_back (
  receipt_id text primary key,
  intent_id text not null,
  given_back_at integer not null
);

-- Proven payments that could not be honoured: the payer is owed something.
create table gate_unhonoured (
  intent_id text primary key,
  project_id text not null,
  payment_hash text not null,
  amount_sats integer not null,
  reason text not null,            -- given back twice | project missing
  noticed_at integer not null,
  honoured_at integer
);
