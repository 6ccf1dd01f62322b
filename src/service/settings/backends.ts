/** The settings of the store, the node and the secret. An error's message completes "<name> must be …". */
import { type StoreUrl, serverUrls } from '../../db/server-urls.ts'
import { BACKEND_FORMS, type Backend, backendOf } from '../../lightning/urls.ts'

const DATABASE_URLS = '`sqlite:<file>` or `postgres://user:password@host:5432/database`'

export function databaseUrl(value: string): StoreUrl {
  if (/^postgres(?:ql)?:\/\//.test(value)) {
    const urls = serverUrls(value)
    const url = urls.every((one) => URL.canParse(one)) ? new URL(urls[0]) : null
    // Without a name, PostgreSQL would use the user's name, which is hardly ever intended.
    if (url === null || url.pathname.length < 2) throw new Error(DATABASE_URLS)
    const pool = url.searchParams.get('pool') ?? '10'
    if (!/^\d{1,3}$/.test(pool) || Number(pool) < 4) {
      throw new Error('a URL whose `pool` is a number of connections from 4 to 999')
    }
    const target = url.searchParams.get('target_session_attrs') ?? 'read-write'
    if (!/^(?:read-write|primary)$/.test(target)) {
      throw new Error('a URL whose `target_session_attrs`, if it is there, is `read-write`')
    }
    return { kind: 'postgres', url: value }
  }
  const file = /^sqlite:(?:\/\/)?(.+)$/.exec(value)?.[1]
  // Each thread of the store would get its own database in memory. SQLite takes `file:` for a URI: the file would be
  // elsewhere than its folder, its secret and its permissions.
  if (!file || file === ':memory:' || file.startsWith('file:')) throw new Error(DATABASE_URLS)
  return { kind: 'sqlite', file }
}

export function lightningUrl(url: string): { kind: Backend; url: string } {
  const kind = backendOf(url)
  if (kind === null) throw new Error(BACKEND_FORMS)
  return { kind, url }
}

export function secrets(value: string): [Uint8Array, ...Uint8Array[]] {
  const [current, ...older] = value.split(',').map((part) => {
    if (!/^[0-9a-fA-F]{64}$/.test(part.trim())) throw new Error('32 bytes in hex, or two of them')
    return new Uint8Array(Buffer.from(part.trim(), 'hex'))
  })
  if (!current || older.length > 1) throw new Error('32 bytes in hex, or two of them')
  return [current, ...older]
}
