-- The part of the budget for unpaid bytes that a reservation counts in, and the wide network around its own. A
-- reservation from before this column counts in the common part, and in no wide network.
alter table whisper_reservation add column part text not null default 'common';
alter table whisper_reservation add column wider_network text not null default '';

-- Besides a client network and 'all', a scope of whisper_unpaid is now a part, or a network's share of a part:
-- 'common', 'common around 203.0', 'small', 'small around 203.0', 'small 203.0.113'.
insert into whisper_unpaid (scope, byte_count)
  select 'common', coalesce(sum(byte_count), 0) from whisper_reservation;
