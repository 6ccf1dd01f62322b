-- The capability that an order extends, or null: then it sells a new one. A settled order that has extended it has
-- no public_id of its own; one that has, could not extend it any more and sold a new one instead.
alter table purchase_order add column extends_id text;
create index purchase_order_by_extends on purchase_order (extends_id) where extends_id is not null;
