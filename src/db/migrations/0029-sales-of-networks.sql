-- For the ceiling on what one client network buys on a day. Only a settled order enters it, so a quote costs nothing
-- more.
create index purchase_order_by_buyer on purchase_order (client_network, settled_at)
  where settled_at is not null;
