-- The tables of every room that both engines spell alike. The events of CATCH differ: 0002-catch-events.
-- Tables whose rows change with every request also stand in 0003-pages.

-- The store itself, and what instances share ----------------------------------------------------------------------

-- Facts about the store itself, such as the network and kind of backend that it belongs to.
create table meta (
  name text primary key,
  value text not null
);

-- Work that instances take turns at, such as a purge: the instance that moves the time does the work.
create table lease (
  name text primary key,
  holder text not null,
  held_until integer not null
);

-- Rate limits that several instances share. Keys are keyed hashes.
create table rate_limit (
  key text primary key,
  points integer not null,
  expire integer
);
create index rate_limit_by_expiry on rate_limit (expire);

-- The last beat of any instance, and until when nothing final happens, after a jump of the clock or a gap.
create table clock (
  id integer primary key,                    -- always 1
  beat_at integer not null,
  held_until integer not null,
  -- The clock went back: until then no invoice is made and nothing is settled either.
  back_until integer not null
);

-- The last beat of each instance that has not signed off.
create table clock_beat (
  instance text primary key,
  beat_at integer not null
);

-- The times in which not every request could reach the service.
create table blind_window (
  began_at integer primary key,
  ended_at integer not null
);
create index blind_window_by_end on blind_window (ended_at);

-- What the operator has suspended.
create table takedown (
  public_id text primary key,
  product text not null,
  reason text not null,            -- the operator's own words; never shown to a buyer
  suspended_at integer not null,
  resumed_at integer
);

-- The invoices of the simulator.
create table simulator_invoice (
  payment_hash text primary key,
  bolt11 text not null,
  preimage text not null,
  state text not null,             -- open | settled
  expires_at integer not null
);
create index simulator_invoice_by_expiry on simulator_invoice (expires_at);

-- Orders ----------------------------------------------------------------------------------------------------------

-- One purchase: one order, one invoice. `order_id` is derived from the Idempotency-Key and its
-- route; order_name makes a repeat find the same order. A purchase of one URL has a random id and no name.
create table purchase_order (
  order_id text primary key,
  secret_id text not null,         -- fingerprint of the secret that the id was derived under
  request_hash blob not null,      -- SHA-256 of plan, terms and body: what makes a repeat the same
  product text not null,
  plan_id text not null,
  plan text not null,              -- JSON snapshot of the plan at quote time
  terms text not null,             -- JSON of the product's own terms
  amount_sats integer not null,
  client_network text not null,
  state text not null,             -- pending | settled | dead | paid_unfulfilled | refunded
  created_at integer not null,
  network text not null,
  bolt11 text not null,
  payment_hash text not null unique,
  quote_expires_at integer not null,
  looked_up_at integer not null,
  settled_at integer,
  settled_by text,                 -- stream | lookup | preimage
  public_id text unique,
  seed blob,                       -- encrypted delivery seed, null once sealed
  expires_at integer,              -- of the capability
  delivered_at integer,
  sealed_at integer,
  -- The client who opened the order: a keyed hash of its address, '' if that was unknown.
  opened_by text not null,
  -- 1 once the quote was shown to a client who did not open the order: it is delivered to proof of the payment alone.
  contested integer not null,
  -- What ended the replay: 'use' of a token, or 'age'.
  sealed_by text,
  -- 'operator' if the operator handed the capability out; null if the service delivered it.
  delivered_by text,
  -- When an operator restored an order that this store had lost. Such a row has neither the key nor the body of
  -- its purchase: a credential vouches for both.
  restored_at integer,
  -- 1 if the node confirmed that a dead order's invoice can never be settled, 0 if only the service's clock says
  -- so: then the order is looked up again.
  is_dead_final integer not null default 0,
  -- The capability that an order extends, or null: then it sells a new one. A settled order that has extended it has
  -- no public_id of its own; one that has, could not extend it any more and sold a new one instead.
  extends_id text,
  -- When the payment of an order was seen that could not be provisioned then, and was later. Such an order's
  -- settled_at is the time of the later success. Null for all others.
  unfulfilled_at integer
);
create index purchase_order_by_state on purchase_order (state, looked_up_at);
create index purchase_order_open on purchase_order (client_network)
  where state = 'pending';
create index purchase_order_unsealed on purchase_order (expires_at) where seed is not null;
create index purchase_order_dead_by_guess on purchase_order (looked_up_at)
  where state = 'dead' and is_dead_final = 0;
-- For the ceiling on what one client network buys on a day. Only a settled order enters it, so a quote costs nothing
-- more.
create index purchase_order_by_buyer on purchase_order (client_network, settled_at)
  where settled_at is not null;
create index purchase_order_by_extends on purchase_order (extends_id) where extends_id is not null;

-- What keys stand for. An order's own name is its id. The others are aliases: of keys that came with its credential.
-- One unique key for both, so that a key never names two orders.
create table order_name (
  name text primary key,
  order_id text not null
);
create index order_name_aliases on order_name (order_id) where name <> order_id;

-- What remains of an order after its row was deleted.
create table order_tombstone (
  payment_hash text primary key,
  ended text not null,             -- used | aged | dead
  ended_at integer not null        -- when the row was deleted
);
create index order_tombstone_dead on order_tombstone (ended_at) where ended = 'dead';

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

-- One row for each payment that the operator has paid back, for the books too. There is a sale with this payment
-- hash, unless the order was never provisioned.
create table refund (
  payment_hash text primary key,
  refunded_at integer not null,
  amount_sats integer not null,
  reason text not null             -- the operator's own words; never shown to a buyer
);
create index refund_by_time on refund (refunded_at, payment_hash);

-- One row per hash bucket of client networks. A unit that opens an order locks its network's row until the
-- commit, so that it counts all open orders of the network.
create table opening_lock (
  bucket integer primary key
);

-- CATCH -----------------------------------------------------------------------------------------------------------

-- What no event changes of an inbox. `number` is short, because each event has it, and is never given twice.
create table catch_inbox (
  number integer primary key autoincrement,
  public_id text not null unique,
  plan_id text not null,
  owner_token_hash blob not null,
  next_owner_token_hash blob,                -- takes over with its first use
  ingest_token_hash blob not null,
  max_bytes_per_request integer not null,
  created_at integer not null,
  -- The answer that its owner has chosen, in JSON; without one it is 204. The secret of an HMAC is sealed.
  response text,
  response_secret blob
);

-- What each event changes of its inbox, and what decides whether it may. Kept narrow: SQLite writes whole pages.
create table catch_inbox_use (
  number integer primary key,
  accepted_request_count integer not null,   -- and the sequence of its latest event
  stored_bytes integer not null,
  request_limit integer not null,
  storage_limit_bytes integer not null,
  expires_at integer not null,
  suspended_at integer,
  destroyed_at integer,
  -- Grows when a token or the answer changes: an event is stored only by an instance that knows of the change.
  revision integer not null default 0
);
create index catch_inbox_use_by_expiry on catch_inbox_use (expires_at);
create index catch_inbox_use_destroyed on catch_inbox_use (destroyed_at) where destroyed_at is not null;

-- The requests to an inbox that were refused, by reason. `refusal_count` grows in turns, a few seconds late.
create table catch_refusal (
  public_id text not null,
  reason text not null,
  refusal_count integer not null,
  first_at integer not null,
  last_at integer not null,
  primary key (public_id, reason)
);

-- WHISPER ---------------------------------------------------------------------------------------------------------

-- The bytes of a WHISPER, stored with its order and kept until the quote dies or the last read.
create table whisper_ciphertext (
  order_id text primary key,
  ciphertext blob not null
);

-- An order whose bytes are not paid yet. Deleted when the quote ends or the order is settled.
create table whisper_reservation (
  order_id text primary key,
  client_network text not null,
  byte_count integer not null,
  -- The part of the budget for unpaid bytes that a reservation counts in, and the wide network around its own.
  part text not null default 'common',
  wider_network text not null default ''
);
create index whisper_reservation_by_network on whisper_reservation (client_network);
create index whisper_reservation_by_wider_network on whisper_reservation (wider_network);

-- The sums of the reservations in each part.
create table whisper_unpaid (
  part text primary key,           -- common | small
  byte_count integer not null
);
insert into whisper_unpaid (part, byte_count) values ('common', 0), ('small', 0);

create table whisper (
  public_id text primary key,
  order_id text not null unique,
  read_token_hash blob not null,
  reads_left integer not null,
  reveal_at integer,
  expires_at integer not null,
  -- Whether a read is noted. A WHISPER without a receipt costs nothing more to read.
  has_receipt integer not null default 0,
  -- Whether a WHISPER waits for a switch.
  has_switch integer not null default 0,
  suspended_at integer
);
create index whisper_by_expiry on whisper (expires_at);

-- Who bought a WHISPER with a receipt can ask when it was read, until a day after its end. The bytes and the
-- reads left are gone by then, so this is a table of its own.
create table whisper_receipt (
  public_id text primary key,
  receipt_token_hash blob not null,
  read_limit integer not null,
  reads_spent integer not null,
  reads text not null,             -- the minutes of the reads, newest first, each with a space after it
  reveal_at integer,
  created_at integer not null,
  expires_at integer not null,
  ended_at integer not null,       -- when it is over: expires_at, unless the last read or its owner ends it before
  was_destroyed integer not null
);
create index whisper_receipt_by_end on whisper_receipt (ended_at);

-- A dead man's switch. Its id binds a secret to a monitor, and tells nothing of the monitor. A retired one is
-- deleted: what is bound stays bound.
create table reveal_switch (
  switch_id text primary key,
  monitor_id text not null unique
);

-- A secret that waits for a monitor to fall silent. It is reserved with the quote, and bound by the settlement.
create table reveal_binding (
  order_id text primary key,
  monitor_id text not null,
  monitor_ends_at integer not null,
  reserved_at integer not null,
  timing text not null,            -- JSON: when the monitor expected pings then
  public_id text unique,           -- of the secret, from the settlement on
  bound_at integer,
  opened_at integer,               -- for good
  dead_at integer,                 -- for good
  -- How many pings the monitor had when the secret was bound: the next one arms it.
  bound_ping_count integer
);
create index reveal_binding_waiting on reveal_binding (monitor_id)
  where opened_at is null and dead_at is null;
create index reveal_binding_unbound on reveal_binding (reserved_at) where public_id is null;

-- PULSE -----------------------------------------------------------------------------------------------------------

-- One monitor. Its state is not stored: each read derives it from these facts.
create table pulse_monitor (
  public_id text primary key,
  public_status_id text not null unique,     -- for sharing; in no relation to public_id
  plan_id text not null,
  owner_token_hash blob not null,
  next_owner_token_hash blob,                -- takes over with its first use
  ping_token_hash blob not null,
  heartbeat_limit integer not null,
  minimum_grace_seconds integer not null,
  name blob not null,                        -- UTF-8 bytes: text cannot hold U+0000 everywhere
  description blob not null,                 -- likewise
  expected_interval_seconds integer not null,
  grace_seconds integer not null,
  public_status_enabled integer not null,    -- 0 | 1
  accepted_heartbeat_count integer not null,
  ping_count integer not null,               -- those that were no starts of runs; the last one has this number
  last_ping_at integer,
  state_since integer not null,              -- when the state as of the last change of this row began
  created_at integer not null,
  expires_at integer not null,
  -- Time alone changes a monitor: it becomes late, or is about to expire. Whoever looks for that finds it by this
  -- time, which a ping does not move: a look that comes too early moves it.
  check_at integer,
  -- Counts the changes of a monitor: what was computed from an earlier one is refused.
  revision integer not null default 0,
  -- The beginning of its open silence.
  late_since integer,
  -- 1 once it has opened what waited for it.
  is_silent integer not null default 0,
  -- When interval or grace were last changed: the deadline counts from here, or from the last ping after it.
  rescheduled_at integer not null default 0,
  -- The first failed run since the last good one, and the newest one's code, or null where it gave none.
  failed_at integer,
  exit_code integer,
  is_expiry_told integer not null default 0,
  -- JSON: the runs that have begun, [[rid, startedAt], …], oldest first, or nothing.
  open_runs text not null default '',
  -- JSON: the last run that has ended, or nothing.
  last_run text not null default '',
  -- JSON: a schedule of cron, which takes the place of interval and grace while it is set, or nothing.
  schedule text not null default '',
  suspended_at integer,
  -- When suspensions of this monitor began and ended, each as `beganAt-endedAt `, newest first, or nothing. They are its
  -- own blind windows.
  suspensions text not null default ''
);
create index pulse_monitor_by_expiry on pulse_monitor (expires_at);
create index pulse_monitor_by_check on pulse_monitor (check_at) where check_at is not null;

-- One ping. It is never later than the ones after it.
create table pulse_ping (
  public_id text not null,
  number integer not null,                   -- in its monitor, from 1
  at integer not null,
  run text,                                  -- JSON of the run that ended with it; null for a plain ping
  primary key (public_id, number)
) without rowid;

-- When a monitor was late, from the deadline that passed to what ended it. One that lasts is told by the monitor.
create table pulse_late_spell (
  public_id text not null,
  began_at integer not null,
  ended_at integer not null,
  cause text not null,                       -- silence | failure
  primary key (public_id, began_at)
) without rowid;

-- Alerts ----------------------------------------------------------------------------------------------------------

-- Where the owner of something is told of what happens to it. The rows of an owner are in one unit with it.
create table alert_destination (
  destination_id text primary key,
  owner_id text not null,                    -- such as the id of a monitor
  place integer not null,                    -- 0 and up; which of the owner's it is
  format text not null,                      -- standard | slack | discord | ntfy | inbox
  host text not null,                        -- host:port of the URL, or the id of the inbox
  sealed_target blob not null,               -- the URL, or the id of the inbox, encrypted
  sealed_secret blob not null,               -- what signs, encrypted
  state text not null,                       -- untested | active | gone
  last_position integer not null,            -- of the newest alert
  done_position integer not null,            -- all up to this one were delivered or given up
  attempts integer not null,                 -- how often the alert whose turn it is was tried
  due_at integer,                            -- when it is tried next, or its attempt's claim is over; null while nothing waits
  not_before integer not null,               -- no other alert before that
  day_started_at integer not null,           -- the window of the daily limit
  day_count integer not null,
  is_private integer not null,               -- 0 | 1; whether it gets what an alert has for its owner alone, too
  unique (owner_id, place)
);
create index alert_destination_by_due on alert_destination (due_at);

-- What a destination is told. Positions are in the order of the changes. Kept for a day after its end.
create table alert (
  destination_id text not null,
  position integer not null,
  message_id text not null,
  type text not null,
  occurred_at integer not null,
  replaces integer not null,                 -- 0 | 1; whether an earlier one says nothing beside it
  content text not null,                     -- JSON
  attempts integer not null,
  attempted_at integer,
  outcome text,                              -- of the last attempt: 2xx | 4xx | 5xx | failed
  done_at integer,                           -- when it was delivered or given up
  -- An alert that must not tell by its time when something happened is told some time later.
  not_before integer not null default 0,
  primary key (destination_id, position)
);
create index alert_by_end on alert (done_at);

-- GATE ------------------------------------------------------------------------------------------------------------

-- A third party's API that takes payments through GATE. Money goes to its address, never through this service.
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
  verify_url text,                 -- LUD-21, null where the provider has none
  state text not null,             -- open | authorized
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
  receipt_id text primary key,     -- the intent and `give_backs`
  intent_id text not null unique,
  project_id text not null,
  verified_by text not null,       -- provider | preimage
  authorized_at integer not null,
  expires_at integer not null,     -- as an admission
  credits_remaining integer not null,
  receipt text not null,           -- the JWS, repeated as it is
  -- If the project's server failed a request, its receipt is given back, and a new one is made when the payer
  -- repeats the request. The row has the newest receipt; `give_backs` counts the earlier ones, and `failed_runs`
  -- those whose request failed. One that was given back after the third failed run is not renewed before the
  -- operator honours the payment.
  give_backs integer not null default 0,
  failed_runs integer not null default 0,
  given_back_at integer
);
create index gate_receipt_by_project on gate_receipt (project_id);
