/** Inboxes and events in the store, without a purchase, and the service on it. */
import type { NewEvent } from '../../src/catch/event-tables.ts'
import { type CatchService, createCatch, type IngestRequest } from '../../src/catch/service.ts'
import { createInboxStore, type insertInbox } from '../../src/catch/store.ts'
import type { Db } from '../../src/db/db.ts'
import { createHints } from '../../src/db/hints.ts'
import { createScheduler } from '../../src/http/turns.ts'
import { createSecrets } from '../../src/secrets/secrets.ts'

export const ID = 'catch_0000000000000000000000'

type NewInbox = Parameters<typeof insertInbox>[0]

/** What is sold as an inbox. The first one of a store has the number 1. */
export const anInbox = (some: Partial<NewInbox> = {}): NewInbox => ({
  publicId: ID,
  planId: 'spark',
  createdAt: 0,
  expiresAt: 10,
  ownerTokenHash: new Uint8Array(32),
  ingestTokenHash: new Uint8Array(32),
  requestLimit: 10,
  storageLimitBytes: 10_000,
  maxBytesPerRequest: 1_000,
  ...some,
})

export const anEvent = (some: Partial<NewEvent> = {}): NewEvent => ({
  salt: 7,
  receivedAt: 1,
  access: 'public',
  method: 'POST',
  path: '',
  query: '',
  headerLines: new Uint8Array(),
  mediaType: null,
  body: new Uint8Array(),
  keptBytes: 10,
  bodySha256: '',
  sourceIp: '',
  ipLocation: null,
  ...some,
})

export const REQUEST: IngestRequest = {
  token: null,
  method: 'POST',
  path: '/',
  query: '',
  rawHeaders: [],
  isProxied: false,
  body: Buffer.from('x'),
  sourceIp: '127.0.0.1',
}

/** @param now the time, by the clock of the service. */
export const serviceOn = (db: Db, now: () => number): CatchService =>
  createCatch({
    db,
    hints: createHints(),
    clock: { now },
    scheduler: createScheduler(),
    locate: () => null,
    onIngested: () => undefined,
    secrets: createSecrets([new Uint8Array(32)]),
  })

/** The number that the events of an inbox name it by, or 0 if there is no such inbox. */
export const numberOf = async (db: Db, publicId: string): Promise<number> =>
  (await createInboxStore(db).inbox(publicId))?.number ?? 0
