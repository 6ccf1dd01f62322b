/** What LND's client says of refusals, and of servers that are no LND. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { systemClock } from '../../../src/lib/clock.ts'
import { createLndHttp } from '../../../src/lightning/lnd/http.ts'
import { createLnd } from '../../../src/lightning/lnd/lnd.ts'
import { MACAROON, PAYMENT_HASH, send, startFakeLnd } from '../../support/fake-lnd.ts'
import type { Fault } from '../../support/stand-ins/http-server.ts'

const LOOKUP = {
  what: 'looking up an invoice',
  method: 'GET',
  path: `/v1/invoice/${PAYMENT_HASH}`,
  timeoutMs: 60_000,
} as const

async function aWorld(t: TestContext, answer?: Fault) {
  const fake = await startFakeLnd(answer)
  const options = { baseUrl: fake.baseUrl, macaroon: MACAROON, certificate: undefined }
  const http = createLndHttp({ ...options, connectTimeoutMs: 5_000 })
  const lnd = createLnd({
    ...options,
    clock: systemClock,
    cursor: { read: async () => 0, write: async () => {} },
  })
  t.after(async () => {
    await http.close()
    await lnd.close()
    await fake.close()
  })
  return { fake, http, lnd }
}

test('a refusal is of LND if it has a number for its code and a text for its message, and of somebody else otherwise', async (t) => {
  let body: unknown
  const { http } = await aWorld(t, (_, response) => send(response, body, 404))
  const odd = {
    reason: 'malformed',
    message: 'LND: looking up an invoice got HTTP 404 that is not of LND',
  }
  for (body of [
    ...['', 'null', '[]', '{}', '<html>'],
    { code: 5 },
    { message: 'no such invoice' },
    { code: '5', message: 'no such invoice' },
    { code: 5, message: ['no such invoice'] },
    { error: 'no such invoice' },
    { error: { code: '5', message: 'no such invoice' } },
  ]) {
    await assert.rejects(http.call(LOOKUP), { ...odd, answer: undefined })
  }
  const fields = { code: 5, message: 'no such invoice' }
  for (body of [fields, { ...fields, details: [] }, { error: { ...fields, http_code: 404 } }]) {
    await assert.rejects(http.call(LOOKUP), {
      reason: 'refused',
      message: 'LND: looking up an invoice was refused: no such invoice',
      answer: fields,
    })
  }
})
