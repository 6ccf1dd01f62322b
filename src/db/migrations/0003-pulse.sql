-- One monitor. Its state is not stored: each read derives it from these facts.
-- hot: pulse_monitor
create table pulse_monitor (
  public_id text primary key,
  public_status_id text not null unique,     -- for sharing; in no relation to public_id
  plan_id text not null,
  owner_token_hash blob not null,
  ping_token_hash blob not null,
  heartbeat_limit integer not null,
  minimum_grace_seconds integer not null,
  name blob not null,                        -- UTF-8 bytes: text cannot hold U+0000 everywhere
  description blob not null,                 -- likewise
  expected_interval_seconds integer not null,
  grace_seconds integer not null,
  public_status_enabled integer not null,    -- 0 | 1
  settings_changed_at integer not null,
  accepted_heartbeat_count integer not null,
  last_ping_at integer,
  recent_heartbeats text not null,           -- the newest times first, 13 digits each
  state_since integer not null,              -- when the state as of the last change of this row began
  created_at integer not null,
  expires_at integer not null
);
create index pulse_monitor_by_expiry on pulse_monitor (expires_at);
