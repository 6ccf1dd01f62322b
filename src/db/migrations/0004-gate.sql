-- A third party's API that takes payments through GATE. Money goes to its address, never through this service.
-- hot: gate_project
create table gate_project (
  project_id text primary key,
  key_hash blob not null unique,   -- SHA-256 of the project capability
  address text not null,           -- Lightning Address
  verification text not null,      -- provider | preimage: what its provider offered when it was saved
  credits integer not null,        -- may go below zero, by no more than the open intents
  created_at integer not null,
  suspended_at integer
);

create table gate_route (
  project_id text not null,
  route_id text not null,
  method text not null,
  pattern text not null,
  price_sats integer not null,
  primary key (project_id, route_id)
);

-- One paid request: one intent, one invoice. `intent_id` is derived from project
-- and Idempotency-Key, so that the primary key alone makes a repeat find the same intent.
-- hot: gate_intent
create table gate_intent (
  intent_id text primary key,
  secret_id text not null,         -- fingerprint of the secret that the id was derived under
  project_id text not null,
  route_id text not null,
  method text not null,
  path text not null,              -- with query
  body_sha256 text not null,
  request_digest text not null,
  amount_sats integer not null,
  recipient text not null,
  network text not null,
  bolt11 text not null,
  payment_hash text not null unique,
  description_hash text not null,  -- match | mismatch | none
  verify_url text,                 -- LUD-21, null where the provider has none
  state text not null,             -- open | authorized
  created_at integer not null,
  quote_expires_at integer not null,
  honoured_until integer not null,
  verify_count integer not null,
  next_verify_at integer not null
);
create index gate_intent_open on gate_intent (project_id, honoured_until) where state = 'open';
create index gate_intent_unpaid on gate_intent (honoured_until) where state = 'open';

-- Outlives the intents: a payment hash is accepted once, for ever and across all projects.
create table gate_payment_hash (
  payment_hash text primary key
);

create table gate_receipt (
  receipt_id text primary key,
  intent_id text not null unique,
  project_id text not null,
  verified_by text not null,       -- provider | preimage
  authorized_at integer not null,
  expires_at integer not null,     -- as an admission
  credits_remaining integer not null,
  receipt text not null            -- the JWS, repeated as it is
);
create index gate_receipt_by_project on gate_receipt (project_id);
