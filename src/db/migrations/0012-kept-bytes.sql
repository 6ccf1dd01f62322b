-- The bytes that an event takes of its inbox's storage, which deleting it frees. Null for an event from before
-- this column, which takes the bytes of its body.
alter table catch_event add column kept_bytes integer;
-- The headers as received, a line `name:value` each, without the dropped ones. Null for an event from before
-- this column, whose headers are the JSON in `headers`; in all others that is an empty list.
alter table catch_event add column header_lines blob;
