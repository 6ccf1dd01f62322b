/** What becomes of the calls of a backend whose node may never answer. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { systemClock } from '../../../src/lib/clock.ts'
import { createCln } from '../../../src/lightning/cln/cln.ts'
import { createLnd } from '../../../src/lightning/lnd/lnd.ts'
import { createPhoenixd } from '../../../src/lightning/phoenixd/phoenixd.ts'
import { serve } from '../../support/serving.ts'
import { until } from '../../support/until.ts'

const cursor = { read: async () => 0, write: async () => {} }
const timeouts = { infoMs: 60_000, lookupMs: 2, createMs: 3 }
const COMMON = { clock: systemClock, cursor, certificate: undefined, private: false, timeouts }
const ID = `02${'ab'.repeat(32)}`
const INFO = {
  LND: {
    chains: [{ network: 'regtest' }],
    synced_to_chain: true,
    identity_pubkey: ID,
  },
  'Core Lightning': { network: 'regtest', id: ID },
  phoenixd: { chain: 'regtest', blockHeight: 1, nodeId: ID },
}

for (const [name, create] of Object.entries({
  LND: (baseUrl: string) => createLnd({ ...COMMON, baseUrl, macaroon: '02' }),
  'Core Lightning': (baseUrl: string) => createCln({ ...COMMON, baseUrl, rune: 'rune' }),
  phoenixd: (baseUrl: string) => createPhoenixd({ ...COMMON, baseUrl, password: 'x' }),
})) {
  test(`closing ${name} ends the call that is under way, whose node may never answer`, async (t) => {
    let asked = 0
    const url = await serve(t, () => void asked++)
    const node = create(url)
    const info = assert.rejects(node.info(), { name: 'NodeError', reason: 'unreachable' })
    await until('the question', () => asked === 1)
    await node.close()
    await info
  })

  test(`each call of ${name} waits for its own time, and no longer`, async (t) => {
    const url = await serve(t, ({ url = '' }, response) => {
      if (url.includes('getinfo')) response.end(JSON.stringify(INFO[name as keyof typeof INFO]))
    })
    const node = create(url)
    t.after(node.close)
    const { timeout } = AbortSignal
    const waits: number[] = []
    t.mock.method(AbortSignal, 'timeout', (ms: number) => {
      waits.push(ms)
      return timeout(ms)
    })
    await node.info()
    const tooLong = { name: 'NodeError', reason: 'timeout' }
    await assert.rejects(node.lookupInvoice('ab'.repeat(32)), tooLong)
    const request = { amountMsat: 1_000, memo: 'x', expirySeconds: 60 }
    await assert.rejects(node.createInvoice(request), tooLong)
    assert.deepEqual(waits, [timeouts.infoMs, timeouts.lookupMs, timeouts.createMs])
  })
}
