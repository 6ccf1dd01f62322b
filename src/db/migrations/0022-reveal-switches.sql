-- A dead man's switch. Its id binds a secret to a monitor, and tells nothing of the monitor. A retired one is
-- deleted: what is bound stays bound.
create table reveal_switch (
  switch_id text primary key,
  monitor_id text not null unique,
  created_at integer not null
);

-- A secret that waits for a monitor to fall silent. It is reserved with the quote, and bound by the settlement.
create table reveal_binding (
  order_id text primary key,
  monitor_id text not null,
  monitor_ends_at integer not null,
  reserved_at integer not null,
  public_id text unique,           -- of the secret, from the settlement on
  bound_at integer,
  armed_at integer,                -- the first ping after that, once somebody has asked
  opened_at integer,               -- for good
  dead_at integer                  -- for good
);
create index reveal_binding_waiting on reveal_binding (monitor_id)
  where opened_at is null and dead_at is null;
create index reveal_binding_unbound on reveal_binding (reserved_at) where public_id is null;

-- Whether a WHISPER waits for a switch.
alter table whisper add column has_switch integer not null default 0;
