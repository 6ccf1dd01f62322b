/** The shape of a store: each column with its type and default, each index, and whatever else a migration has made. */
import type { Db, Row } from '../../src/db/db.ts'

/** One line for each part, sorted, in the words of SQLite. */
export async function shapeOf(db: Db): Promise<string[]> {
  return (await db.read(db.engine === 'sqlite' ? SQLITE : POSTGRES))
    .map(({ part }: Row) => inOneSpelling(String(part)))
    .toSorted()
}

/** PostgreSQL puts types, quotes and brackets into the conditions that it was given. */
function inOneSpelling(part: string): string {
  const [columns = '', condition] = part
    .replaceAll(/\s+/g, ' ')
    .replaceAll('::text', '')
    .replaceAll('"', '')
    .trim()
    .split(/ where /i)
  return condition === undefined
    ? columns
    : `${columns} where ${condition.replaceAll(/[()]/g, '').toLowerCase()}`
}

const SQLITE = `
  select 'column ' || m.name || '.' || c.name || ' ' || lower(c.type) ||
      case when c."notnull" or c.pk then ' not null' else '' end ||
      coalesce(' default ' || c.dflt_value, '') as part
    from sqlite_schema m join pragma_table_info(m.name) c
    where m.type = 'table' and m.name not like 'sqlite!_%' escape '!'
  union all
  select 'index on ' || m.name || ' unique (' || (
      select group_concat(name, ', ') from (select name from pragma_table_info(m.name) where pk order by pk)) || ')'
    from sqlite_schema m
    where m.type = 'table' and exists (select 1 from pragma_table_info(m.name) where pk)
  union all
  select 'index on ' || m.name || case when i."unique" then ' unique' else '' end || ' (' || (
      select group_concat(coalesce(x.name, '?') || case when x."desc" then ' desc' else '' end, ', ')
      from pragma_index_xinfo(i.name) x where x.key) || ')' ||
      coalesce(substr(s.sql, instr(lower(s.sql), ' where ')), '') as part
    from sqlite_schema m join pragma_index_list(m.name) i
    left join sqlite_schema s on s.type = 'index' and s.name = i.name and lower(s.sql) like '% where %'
    where m.type = 'table' and m.name not like 'sqlite!_%' escape '!' and i.origin <> 'pk'
  union all
  select m.type || ' ' || coalesce(m.sql, m.name) from sqlite_schema m where m.type in ('view', 'trigger')`

const POSTGRES = `
  select 'column ' || table_name || '.' || column_name || ' ' ||
      case data_type when 'bigint' then 'integer' when 'bytea' then 'blob' when 'integer' then 'integer of 32 bits'
        else data_type end ||
      case when is_nullable = 'NO' then ' not null' else '' end ||
      coalesce(' default ' || column_default, '') as part
    from information_schema.columns where table_schema = 'public'
  union all
  select replace(
      regexp_replace(indexdef, '^CREATE (UNIQUE )?INDEX .* ON public\\.(\\w+) USING btree ', 'index on \\2 \\1'),
      'UNIQUE', 'unique') as part
    from pg_indexes where schemaname = 'public'
  union all
  select 'options of ' || relname || ' ' || array_to_string(reloptions, ', ') as part
    from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace and reloptions is not null`
