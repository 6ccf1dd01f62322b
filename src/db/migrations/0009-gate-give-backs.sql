-- A receipt whose request the project's server failed is given back, and the next one is made when
-- the payer asks again. The row holds the newest; `give_backs` counts those before it.
alter table gate_receipt add column give_backs integer not null default 0;
alter table gate_receipt add column given_back_at integer;

-- Every receipt that was given back, so that telling it again is told from another one.
create table gate_give_back (
  receipt_id text primary key,
  intent_id text not null,
  given_back_at integer not null
);

-- Payments that are proven and could not be honoured: somebody is owed something.
create table gate_unhonoured (
  intent_id text primary key,
  project_id text not null,
  payment_hash text not null,
  amount_sats integer not null,
  reason text not null,            -- given back twice | project missing
  noticed_at integer not null,
  honoured_at integer
);
