import type { CatchCapability, CatchEvent } from '../../src/client/index.ts'
import type { Statement } from '../../src/db/db.ts'
import { type Answer, answerOf } from './answer.ts'
import { type After, jsonFile } from './folder.ts'
import { startServer, type TestServer } from './server.ts'
import { type Exchanged, exchange } from './socket.ts'
import { openDatabase, type Stored } from './store.ts'
import { unit } from './unit.ts'

export const UNAVAILABLE: Answer = { status: 401, text: '{"error":"catch unavailable"}' }
export const INVALID_QUERY: Answer = { status: 400, text: '{"error":"invalid query"}' }

/** Buys an inbox. Its tokens are unused. */
export function anInbox(
  { mayfly, pay }: TestServer,
  planId: 'spark' | 'standard' | 'long' = 'spark',
): Promise<CatchCapability> {
  return mayfly.buyCatch({ planId, onInvoice: ({ bolt11 }) => pay(bolt11) })
}

/** A server whose inboxes accept bodies of 60 bytes, and store two bare requests with 100 bytes of bodies. */
export async function aSmallServer(t: After): Promise<TestServer> {
  const spark = { storageLimitBytes: SMALL_BYTES, maxBytesPerRequest: 60 }
  return startServer(t, { MAYFLY_CATALOG: await jsonFile(t, { catch: { spark } }) })
}

/** Sends a request to the inbox. `path` is appended to its address. */
export async function send(
  { url }: { url: string },
  { publicId }: { publicId: string },
  { path = '', ...request }: RequestInit & { path?: string },
): Promise<Answer> {
  return answerOf(await fetch(`${url}/c/${publicId}${path}`, request))
}

export type Bare = { method?: string; target?: string; headers?: string[]; body?: string }

/** Sends a request with only the headers that HTTP needs and the given ones, in Latin-1. */
export function sendBare(
  { url }: { url: string },
  { publicId }: { publicId: string },
  { method = 'POST', target = '', headers = [], body = '' }: Bare = {},
): Promise<Exchanged> {
  const lines = ['Host: x', 'Connection: close', `Content-Length: ${body.length}`, ...headers]
  const head = `${method} /c/${publicId}${target} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`
  return exchange(url, head, body)
}

/** The storage that a bare request uses, without its body and the digits of its Content-Length. */
export const BARE_BYTES = 'Hostx'.length + 'Connectionclose'.length + 'Content-Length'.length
const SMALL_BYTES = 2 * (BARE_BYTES + 'nn'.length) + 100

/** Sends a GET with the owner's token. Null sends no token. */
export async function ask(
  { url }: { url: string },
  path: string,
  token: string | null,
): Promise<Answer> {
  return answerOf(await fetch(url + path, { headers: bearer(token) }))
}

/** Sends a DELETE with the owner's token. */
export async function askDelete(
  { url }: { url: string },
  path: string,
  token: string,
): Promise<Answer> {
  return answerOf(await fetch(url + path, { method: 'DELETE', headers: bearer(token) }))
}

function bearer(token: string | null): Record<string, string> {
  return token === null ? {} : { authorization: `Bearer ${token}` }
}

/** All events of the inbox, newest first. */
export function eventsOf({ mayfly }: TestServer, inbox: CatchCapability): Promise<CatchEvent[]> {
  return Array.fromAsync(mayfly.catch(inbox).events())
}

/** Sends a GET whose target is not normalised. */
export function get({ url }: { url: string }, target: string): Promise<Exchanged> {
  return exchange(url, `GET ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)
}

/** Changes the store of the running server, like the operator's commands. */
export async function asOperator({ databaseUrl }: Stored, change: Statement): Promise<void> {
  const store = await openDatabase(databaseUrl)
  await store.write(unit(change))
  await store.close()
}
