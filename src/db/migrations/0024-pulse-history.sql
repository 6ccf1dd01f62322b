-- The whole life of a monitor, for its owner. The monitor's row holds the newest pings; each hundred that leave it
-- become a row here, so that a ping itself writes no second row.
create table pulse_ping_chunk (
  public_id text not null,
  position integer not null,                 -- 0 for the first hundred
  times text not null,                       -- a hundred times, newest first, 13 digits each
  primary key (public_id, position)
);

-- The runs that have ended. A failed ping is one, too.
create table pulse_run (
  public_id text not null,
  ping_number integer not null,              -- of the ping that ended it; the first ping with a stored time is 1
  rid text,
  started_at integer,                        -- null if no start was sent
  has_failed integer not null,               -- 0 | 1
  exit_code integer,                         -- null if it gave none
  primary key (public_id, ping_number)
);

-- Monitors that are deleted, and whose history is not yet: a long one is deleted in several units.
create table pulse_gone (
  public_id text primary key
);

-- From when on pings were expected: the first ping, or where the history of an older monitor begins.
alter table pulse_monitor add column armed_at integer;
-- How many chunks there are, and how many accepted beats have no stored time: starts, and what came before.
alter table pulse_monitor add column chunk_count integer not null default 0;
alter table pulse_monitor add column untimed_heartbeat_count integer not null default 0;
-- How long the late spells that have ended lasted together.
alter table pulse_monitor add column late_ms integer not null default 0;
update pulse_monitor set
  untimed_heartbeat_count = accepted_heartbeat_count - length(recent_heartbeats) / 13,
  armed_at = case when recent_heartbeats = '' then null
    else cast(substr(recent_heartbeats, length(recent_heartbeats) - 12, 13) as integer) end;

-- A monitor is late after a deadline or a failed run. One table has both, apart from each other.
alter table pulse_silence rename to pulse_late_spell;
alter table pulse_late_spell add column cause text not null default 'silence'; -- silence | failure
-- How long the spells before it lasted together, so that a share of time needs no sum.
alter table pulse_late_spell add column late_before_ms integer not null default 0;
update pulse_late_spell set late_before_ms = (
  select coalesce(sum(earlier.ended_at - earlier.began_at), 0) from pulse_late_spell earlier
  where earlier.public_id = pulse_late_spell.public_id and earlier.began_at < pulse_late_spell.began_at);
update pulse_monitor set late_ms = (
  select coalesce(sum(ended_at - began_at), 0) from pulse_late_spell
  where pulse_late_spell.public_id = pulse_monitor.public_id);
