/** What the writer of `places.faults.ts` and its test share. */
import type { NewEvent } from '../../src/catch/event-tables.ts'

export const PLACES_INBOXES = Array.from({ length: 20 }, (_, i) => `inbox ${i}`)

export const placesEvent = (salt: number): NewEvent => ({
  salt,
  receivedAt: 1_700_000_000_000,
  access: 'public',
  method: 'POST',
  path: '/',
  query: '',
  headerLines: new Uint8Array(),
  contentType: null,
  mediaType: null,
  body: new Uint8Array(500),
  keptBytes: 500,
  bodySha256: '00',
  sourceIp: '127.0.0.1',
  ipLocation: null,
})
