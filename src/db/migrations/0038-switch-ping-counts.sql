-- A ping after the purchase arms a switch. The clock may have been set between the two, so pings are counted.

-- What a switch knows of monitors: how many pings have a stored time.
create view monitor_pings as
  select public_id as monitor_id, accepted_heartbeat_count - untimed_heartbeat_count as ping_count
  from pulse_monitor;

-- How many pings the monitor had when the secret was bound. Null in bindings from before: those go by time.
alter table reveal_binding add column bound_ping_count integer;
