-- 1 if the node confirmed that a dead order's invoice can never be settled, 0 if only the service's clock says
-- so: then the order is looked up again. Orders that are dead already get 0, because it is unknown.
alter table purchase_order add column is_dead_final integer not null default 0;
create index purchase_order_dead_by_guess on purchase_order (looked_up_at)
  where state = 'dead' and is_dead_final = 0;
