/** Writes inboxes and events directly into a store that no service has open: a million in seconds. */
import { createHash, randomInt } from 'node:crypto'
import { DatabaseSync } from 'node:sqlite'
import { keptBytes, packHeaders } from '../src/catch/kept.ts'
import { newId, type TokenKind, tokenOf } from '../src/lib/ids.ts'

export type Fill = {
  inboxes: number
  eventsEach: number
  /** The body of the n-th event. */
  body: (n: number) => Buffer
}

export type Filled = { publicId: string; ownerToken: string }[]

const DAY = 24 * 60 * 60 * 1000
const HEADERS = [
  ...['Host', '127.0.0.1:8402'],
  ...['Content-Type', 'application/json'],
  ...['User-Agent', 'bench'],
  ...['Content-Length', '500'],
]
const PATH = '/hook'

/** Events arrive at all inboxes in turn. A service has created `file`. */
export function fill(file: string, { inboxes, eventsEach, body }: Fill): Filled {
  const store = new DatabaseSync(file)
  store.exec('pragma synchronous = off; pragma cache_size = -200000; begin')
  const now = Date.now()
  const filled = Array.from({ length: inboxes }, () => ({
    publicId: newId('catch'),
    ownerToken: token('catch_owner'),
  }))
  const addInbox = store.prepare(`insert into catch_inbox
    (public_id, plan_id, owner_token_hash, ingest_token_hash, max_bytes_per_request, created_at)
    values (?, 'long', ?, ?, 1048576, ?)`)
  const addUse = store.prepare(`insert into catch_inbox_use
    (number, request_limit, storage_limit_bytes, accepted_request_count, stored_bytes, expires_at)
    values (?, 1000000000, 1000000000000, ?, 0, ?)`)
  const numbers = filled.map(({ publicId, ownerToken }) => {
    const hashes = [hashOf(ownerToken), hashOf(token('catch_ingest'))] as const
    const number = Number(addInbox.run(publicId, ...hashes, now).lastInsertRowid)
    addUse.run(number, eventsEach, now + 30 * DAY)
    return number
  })
  const addEvent = store.prepare(`insert into catch_event
    (inbox, sequence, salt, received_at, access, method, media_type, body_bytes, source_ip,
     ip_location, path, query, body_sha256, body, kept_bytes, header_lines)
    values (?, ?, ?, ?, 'public', 'POST', 'application/json', ?, '127.0.0.1', null, '${PATH}', '',
            ?, ?, ?, ?)`)
  const headerLines = packHeaders(HEADERS)
  let n = 0
  for (let sequence = 1; sequence <= eventsEach; sequence++) {
    for (const number of numbers) {
      const bytes = body(n++)
      const sha256 = createHash('sha256').update(bytes).digest('hex')
      const salt = randomInt(2 ** 26)
      const kept = keptBytes({ path: PATH, query: '', headers: HEADERS, body: bytes })
      const event = [number, sequence, salt, now, bytes.length] as const
      addEvent.run(...event, sha256, bytes, kept, headerLines)
    }
  }
  store.exec(
    'insert into catch_event_place (inbox, sequence, id) select inbox, sequence, id from catch_event order by 1, 2',
  )
  store.exec(`update catch_inbox_use set stored_bytes = (
      select coalesce(sum(kept_bytes), 0)
      from catch_event where inbox = number)
    where number >= ${numbers[0]}; commit`)
  store.exec('pragma wal_checkpoint(truncate)')
  store.close()
  return filled
}

function token(kind: TokenKind): string {
  return tokenOf(kind, crypto.getRandomValues(new Uint8Array(32)))
}

const hashOf = (text: string): Buffer => createHash('sha256').update(text).digest()
