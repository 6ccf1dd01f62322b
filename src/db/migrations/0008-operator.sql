-- 'operator' if the operator handed the capability out; null if the service delivered it.
alter table purchase_order add column delivered_by text;

-- When an operator restored an order that this store had lost. Such a row has neither the key nor the body of
-- its purchase: a credential vouches for both.
alter table purchase_order add column restored_at integer;
