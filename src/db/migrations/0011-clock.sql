-- The clocks of the instances that run: each writes its own now and then, and reads the others'.
create table clock_beat (
  instance text primary key,
  -- Counts up, so that others see it move whatever the clock says.
  beat integer not null,
  clock_at integer not null,
  -- 1 where the instance trusts its clock enough to delete by it.
  is_trusted integer not null
);

-- The last time that an older store has seen: later than none of its orders was made.
insert into meta (name, value)
  select 'clock_seen_at', cast(max(created_at) as text) from purchase_order
  having max(created_at) is not null;
