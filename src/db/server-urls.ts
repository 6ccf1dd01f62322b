/**
 * The URL of a database may name several servers, as libpq's may: `postgres://user@a:5432,b:5432/database`.
 * One of them is the primary.
 */

/** The address of a store, as its setting is read. A server's URL may contain a password, so it is never shown. */
export type StoreUrl = { kind: 'sqlite'; file: string } | { kind: 'postgres'; url: string }

/** Everything before the servers, the servers, and everything after them. */
const PARTS = /^(postgres(?:ql)?:\/\/(?:[^/?#]*@)?)([^/?#]*)(.*)$/s

/** A URL for each server, in the order in which they are named. */
export function serverUrls(url: string): [string, ...string[]] {
  const [, before = '', servers = '', after = ''] = PARTS.exec(url) ?? []
  const [first, ...others] = servers.split(',').map((server) => before + server + after)
  return servers === '' || first === undefined ? [url] : [first, ...others]
}

/** The servers and the database, for sentences: what else is in the URL may be a secret. */
export function placeOf(url: string): { servers: string; database: string } {
  const urls = serverUrls(url).map((one) => new URL(one))
  return {
    servers: urls.map(({ host }) => host).join(', '),
    database: decodeURIComponent(urls[0]?.pathname.slice(1) ?? ''),
  }
}
