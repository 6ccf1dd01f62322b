-- Tables whose rows change with every request. Free space in a page lets an updated row stay there, without new index
-- entries. An early vacuum removes dead rows while the tables are small.
alter table rate_limit set (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.02);
alter table purchase_order set (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.02);
alter table catch_inbox_use set (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.02);
alter table whisper_unpaid set (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.02);
alter table whisper set (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.02);
alter table whisper_receipt set (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.02);
alter table pulse_monitor set (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.02);
alter table alert_destination set (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.02);
alter table gate_project set (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.02);
alter table gate_intent set (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.02);

-- Tables whose rows contain many bytes when they are deleted.
alter table catch_event
  set (autovacuum_vacuum_scale_factor = 0.02, toast.autovacuum_vacuum_scale_factor = 0.02);
alter table whisper_ciphertext
  set (autovacuum_vacuum_scale_factor = 0.02, toast.autovacuum_vacuum_scale_factor = 0.02);
