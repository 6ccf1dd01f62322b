-- hot: pulse_arrival
-- The pings of the last minutes, which all instances count into the same rows. A slot is used again when its five
-- seconds are long over, so the table stays small.
create table pulse_arrival (
  slot integer primary key,
  bucket_at integer not null,                -- when its five seconds began
  arrived_count integer not null,            -- pings that reached any instance
  missed_count integer not null              -- pings that were due then, and whose monitors are late by now
);

-- The last time that any ping reached any instance.
alter table pulse_beat add column pinged_at integer not null default 0;
