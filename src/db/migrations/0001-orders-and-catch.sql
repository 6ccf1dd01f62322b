-- Facts about the store itself, such as the network and kind of backend that it belongs to.
create table meta (
  name text primary key,
  value text not null
);

-- One purchase: one order, one invoice. `order_id` is derived from the Idempotency-Key and its
-- scope, so that the primary key alone makes a repeat find the same order.
-- hot: purchase_order
create table purchase_order (
  order_id text primary key,
  secret_id text not null,         -- fingerprint of the secret that the id was derived under
  key_hash blob not null,          -- HMAC of the Idempotency-Key
  request_hash blob not null,      -- SHA-256 of plan, terms and body: what makes a repeat the same
  product text not null,
  plan_id text not null,
  plan text not null,              -- JSON snapshot of the plan at quote time
  terms text not null,             -- JSON of the product's own terms
  memo text not null,              -- the invoice's text
  amount_sats integer not null,
  client_network text not null,
  state text not null,             -- opening | pending | settled | dead | paid_unfulfilled
  created_at integer not null,
  claimed_at integer not null,     -- who makes the invoice of an opening order
  network text,
  bolt11 text,
  payment_hash text unique,
  quote_expires_at integer,
  looked_up_at integer not null,
  settled_at integer,
  settled_by text,                 -- stream | lookup | preimage
  public_id text unique,
  seed blob,                       -- encrypted delivery seed, null once sealed
  expires_at integer,              -- of the capability
  delivered_at integer,
  sealed_at integer
);
create index purchase_order_by_state on purchase_order (state, looked_up_at);
create index purchase_order_open on purchase_order (client_network)
  where state in ('opening', 'pending');
create index purchase_order_unsealed on purchase_order (expires_at) where seed is not null;

-- hot: catch_inbox
create table catch_inbox (
  public_id text primary key,
  plan_id text not null,
  owner_token_hash blob not null,
  ingest_token_hash blob not null,
  request_limit integer not null,
  storage_limit_bytes integer not null,
  max_bytes_per_request integer not null,
  accepted_request_count integer not null,
  stored_bytes integer not null,
  last_sequence integer not null,
  created_at integer not null,
  expires_at integer not null,
  suspended_at integer,
  destroyed_at integer
);
create index catch_inbox_by_expiry on catch_inbox (expires_at);
create index catch_inbox_destroyed on catch_inbox (destroyed_at) where destroyed_at is not null;

-- No primary key besides the index: rows of all inboxes are appended in the order of arrival, and the
-- bodies stay out of the index's tree. `salt` completes the event's UUIDv7.
-- bytes: catch_event
create table catch_event (
  public_id text not null,
  sequence integer not null,
  salt integer not null,
  received_at integer not null,
  access text not null,            -- public | authenticated
  method text not null,
  media_type text,                 -- of the content type, lower case, without parameters
  body_bytes integer not null,
  source_ip text not null,
  ip_location text,                -- JSON
  path text not null,
  query text not null,
  content_type text,
  headers text not null,           -- JSON array of {name, value}
  body_sha256 text not null,       -- hex
  body blob not null
);
create unique index catch_event_by_inbox on catch_event (public_id, sequence);

create table simulator_invoice (
  payment_hash text primary key,
  bolt11 text not null,
  preimage text not null,
  state text not null,             -- open | settled
  expires_at integer not null
);
create index simulator_invoice_by_expiry on simulator_invoice (expires_at);
