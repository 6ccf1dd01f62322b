/** What the watch of phoenixd does with a listener that throws. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { NODE_TIMEOUTS } from '../../../src/lightning/node/node.ts'
import { watchPhoenixd } from '../../../src/lightning/phoenixd/watch.ts'
import { manualClock } from '../../support/shop.ts'
import { createLedger } from '../../support/stand-ins/ledger.ts'
import { startPhoenixd } from '../../support/stand-ins/phoenixd.ts'
import { until } from '../../support/until.ts'

test("phoenixd's watch goes on when the listener throws, and tells of what comes afterwards", async (t) => {
  const clock = manualClock(Date.now())
  const own = createLedger(clock)
  const standIn = await startPhoenixd({ clock, own })
  const stop = new AbortController()
  const warnings: string[] = []
  const told: string[] = []
  let isBroken = true
  const ended = watchPhoenixd(
    {
      baseUrl: standIn.baseUrl,
      authorization: `Basic ${Buffer.from(`:${standIn.limitedPassword}`).toString('base64')}`,
      certificate: undefined,
      timeouts: { ...NODE_TIMEOUTS, retryFirstMs: 1, retryMaxMs: 1 },
      probe: async () => {},
      onWarning: (message) => warnings.push(message),
    },
    (paymentHash) => {
      if (isBroken) throw new Error('broken')
      told.push(paymentHash)
    },
    stop.signal,
  )
  t.after(async () => {
    stop.abort()
    await ended
    await standIn.close()
  })
  const invoice = own.make({ amountMsat: 21_000, memo: 'Mayfly', expirySeconds: 900 })
  await until('a websocket', () => standIn.sockets() === 1)
  standIn.tell(invoice)
  await until('a warning', () => warnings.length > 0)
  isBroken = false
  await until('word of it', () => {
    standIn.tell(invoice)
    return told.length > 0
  })
  assert.equal(told[0], invoice.paymentHash)
  assert.deepEqual(warnings, ['phoenixd: the cursor or the listener failed; connecting again'])
})
