-- The clocks of the running instances: each regularly writes its own, and reads those of the others.
create table clock_beat (
  instance text primary key,
  -- Counts up, so that the others see that the instance runs, even if its clock stands still.
  beat integer not null,
  clock_at integer not null,
  -- 1 if the instance trusts its clock enough to delete by it.
  is_trusted integer not null
);

-- The last known time of an older store: when its newest order was made.
insert into meta (name, value)
  select 'clock_seen_at', cast(max(created_at) as text) from purchase_order
  having max(created_at) is not null;
