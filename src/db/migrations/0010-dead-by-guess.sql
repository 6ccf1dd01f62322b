-- Whether the node itself said that a dead order's invoice can never be settled (1), or our clock was all
-- that said so (0). The second kind is looked at again. Of orders that are dead already nobody knows.
alter table purchase_order add column is_dead_final integer not null default 0;
create index purchase_order_dead_by_guess on purchase_order (looked_up_at)
  where state = 'dead' and is_dead_final = 0;
