-- Who a capability was handed to, where that was not the buyer over the network: 'operator'.
alter table purchase_order add column delivered_by text;

-- When an operator made an order good that this store had lost. Such a row knows neither the key nor the
-- body of its purchase: a credential vouches for both.
alter table purchase_order add column restored_at integer;
