/** The shape of a store: each column with its type and default, each index, and whatever else a migration has made. */
import type { Db, Row } from '../../src/db/db.ts'

/** One line for each part, sorted. */
export async function shapeOf(db: Db): Promise<string[]> {
  return (await db.read(db.engine === 'sqlite' ? SQLITE : POSTGRES))
    .map(({ part }: Row) => String(part).replaceAll(/\s+/g, ' ').trim())
    .toSorted()
}

const SQLITE = `
  select 'column ' || m.name || '.' || c.name || ' ' || lower(c.type) ||
      case when c."notnull" then ' not null' else '' end ||
      case when c.pk then ' key ' || c.pk else '' end ||
      coalesce(' default ' || c.dflt_value, '') as part
    from sqlite_schema m join pragma_table_info(m.name) c
    where m.type = 'table' and m.name not like 'sqlite!_%' escape '!'
  union all
  select 'index on ' || m.name || case when i."unique" then ' unique' else '' end || ' (' || (
      select group_concat(coalesce(x.name, '?') || case when x."desc" then ' desc' else '' end, ', ')
      from pragma_index_xinfo(i.name) x where x.key) || ')' ||
      coalesce(substr(s.sql, instr(lower(s.sql), ' where ')), '') as part
    from sqlite_schema m join pragma_index_list(m.name) i
    left join sqlite_schema s on s.type = 'index' and s.name = i.name and lower(s.sql) like '% where %'
    where m.type = 'table' and m.name not like 'sqlite!_%' escape '!'
  union all
  select m.type || ' ' || coalesce(m.sql, m.name) from sqlite_schema m where m.type in ('view', 'trigger')`

const POSTGRES = `
  select 'column ' || table_name || '.' || column_name || ' ' || data_type ||
      case when is_nullable = 'NO' then ' not null' else '' end ||
      coalesce(' default ' || column_default, '') as part
    from information_schema.columns where table_schema = 'public'
  union all
  select regexp_replace(indexdef, '^CREATE (UNIQUE )?INDEX .* ON public\\.', 'index \\1on ') as part
    from pg_indexes where schemaname = 'public'
  union all
  select 'options of ' || relname || ' ' || array_to_string(reloptions, ', ') as part
    from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace and reloptions is not null`
