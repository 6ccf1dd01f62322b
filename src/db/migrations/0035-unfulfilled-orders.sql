-- When the payment of an order was seen that could not be provisioned then, and was later. Such an order's
-- settled_at is the time of the later success. Null for all others.
alter table purchase_order add column unfulfilled_at integer;
