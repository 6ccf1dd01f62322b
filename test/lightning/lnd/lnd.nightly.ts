/** LND with real faults: killed, frozen, cut off, or given the wrong keys. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { systemClock } from '../../../src/lib/clock.ts'
import { createLnd, type LndOptions } from '../../../src/lightning/lnd/lnd.ts'
import type { LightningNode } from '../../../src/lightning/node/node.ts'
import { readLndUrl } from '../../../src/lightning/urls.ts'
import { decodeInvoice } from '../../../src/protocol/bolt11.ts'
import { missingNodes, startTestbed, type Testbed } from '../../support/nodes/testbed.ts'
import { until } from '../../support/until.ts'

const ASK = { amountMsat: 21_000, memo: 'Mayfly', expirySeconds: 900 }
const BAKE = 'lncli bakemacaroon invoices:read invoices:write info:read'

describe('LND', { skip: await missingNodes() }, () => {
  let testbed: Testbed
  let macaroon: string
  const opened: LightningNode[] = []

  before(async () => {
    testbed = await startTestbed()
    macaroon = await testbed.alice.bake('invoices:read', 'invoices:write', 'info:read')
  })
  after(async () => {
    await Promise.all(opened.map((each) => each.close()))
    await testbed?.close()
  })

  function open(changes: Partial<LndOptions> = {}): LightningNode {
    const lnd = createLnd({
      baseUrl: testbed.alice.baseUrl,
      macaroon,
      certificate: testbed.alice.certificate(),
      clock: systemClock,
      cursor: aCursor(),
      ...changes,
    })
    opened.push(lnd)
    return lnd
  }

  async function settle(lnd: LightningNode): Promise<string> {
    const { bolt11, paymentHash } = await lnd.createInvoice(ASK)
    await testbed.pay(bolt11)
    return paymentHash
  }

  /** Resolves once the watch tells of payments: until then they could be missed (see lnd-watch). */
  async function watched(lnd: LightningNode) {
    const told = new Set<string>()
    const stop = new AbortController()
    const ended = lnd.watch((paymentHash) => told.add(paymentHash), stop.signal)
    await until('a watch that tells of payments', async () => {
      const paymentHash = await settle(lnd)
      return until('word of it', () => told.has(paymentHash), { withinMs: 1_000 })
    })
    const end = async () => {
      stop.abort()
      await ended
    }
    return { told, end }
  }

  test('LND makes invoices of single millisatoshis', async () => {
    const { bolt11 } = await open().createInvoice({ ...ASK, amountMsat: 21_001 })
    assert.equal(decodeInvoice(bolt11).amountMsat, 21_001)
  })

  test('LND opens from a URL that names the files of the node', async () => {
    const { alice } = testbed
    const [macaroonFile, cert] = [alice.macaroonFile('admin'), alice.certificateFile]
    const query = new URLSearchParams({ macaroon: macaroonFile, cert, private: '1' })
    const lnd = open(await readLndUrl(`lnd+${alice.baseUrl}?${query}`))
    assert.equal(await lnd.checkAccess(), null)
    assert.equal(decodeInvoice((await lnd.createInvoice(ASK)).bolt11).amountMsat, 21_000)
  })

  test('LND keeps an invoice open through kill -9 and a restart, and lets it be paid', async () => {
    const lnd = open()
    const { bolt11, paymentHash } = await lnd.createInvoice(ASK)
    await testbed.alice.kill()
    await assert.rejects(lnd.lookupInvoice(paymentHash), { reason: 'unreachable' })
    await assert.rejects(lnd.createInvoice(ASK), { reason: 'unreachable' })
    await testbed.alice.start()
    assert.deepEqual(await lnd.lookupInvoice(paymentHash), { state: 'open' })
    await testbed.routesReady()
    await testbed.pay(bolt11)
    assert.deepEqual(await lnd.lookupInvoice(paymentHash), { state: 'settled' })
  })

  test('LND gives up on a frozen node in time, and works with it again afterwards', async () => {
    const lnd = open({ timeouts: { createMs: 3_000, lookupMs: 3_000, infoMs: 3_000 } })
    const { paymentHash } = await lnd.createInvoice(ASK)
    testbed.alice.freeze()
    try {
      const calls = [lnd.info(), lnd.createInvoice(ASK), lnd.lookupInvoice(paymentHash)]
      for (const call of await Promise.allSettled(calls)) {
        assert.equal(call.status === 'rejected' && call.reason.reason, 'timeout')
      }
      assert.match(
        (await lnd.checkAccess())?.sentence ?? '',
        /took too long: whatever is at .* not answer/,
      )
    } finally {
      testbed.alice.thaw()
    }
    assert.deepEqual(await lnd.lookupInvoice(paymentHash), { state: 'open' })
    assert.equal((await lnd.info()).network, 'regtest')
  })

  test('LND tells of a settlement that came while the watch was cut off by kill -9', async () => {
    // A long first pause: the payment comes before the watch does.
    const warnings: string[] = []
    const lnd = open({ timeouts: { retryFirstMs: 4_000 }, onWarning: (it) => warnings.push(it) })
    const { told, end } = await watched(lnd)
    await testbed.alice.kill()
    await until('a warning', () => warnings.length > 0)
    await testbed.alice.start()
    await testbed.routesReady()
    const meanwhile = await settle(lnd)
    await until('word of it', () => told.has(meanwhile))
    const afterwards = await settle(lnd)
    await until('word of the next one', () => told.has(afterwards))
    assert.equal(warnings.length, 1)
    await end()
  })

  test('LND notices that a watched node is frozen, and tells of payments once it is not', async () => {
    const warnings: string[] = []
    const lnd = open({
      timeouts: { probeEveryMs: 200, infoMs: 3_000, retryFirstMs: 100 },
      onWarning: (it) => warnings.push(it),
    })
    const { told, end } = await watched(lnd)
    testbed.alice.freeze()
    try {
      await until('a warning', () => warnings.some((each) => /took too long/.test(each)))
    } finally {
      testbed.alice.thaw()
    }
    const paymentHash = await settle(lnd)
    await until('word of it', () => told.has(paymentHash))
    await end()
  })

  test('LND goes on from the cursor of an earlier run', async () => {
    const cursor = aCursor()
    const first = open({ cursor })
    const { end } = await watched(first)
    await end()
    await first.close()

    const second = open({ cursor })
    const between = await settle(second)
    const told = new Set<string>()
    const stop = new AbortController()
    const ended = second.watch((paymentHash) => told.add(paymentHash), stop.signal)
    await until('word of what settled in between', () => told.has(between))
    stop.abort()
    await ended
  })

  test('LND finds nothing missing with the three permissions', async () => {
    assert.equal(await open().checkAccess(), null)
  })

  test('LND says that the stock invoice macaroon lacks info:read, and what to bake', async () => {
    const lnd = open({ macaroon: testbed.alice.macaroon('invoice') })
    assert.equal(
      (await lnd.checkAccess())?.sentence,
      `LND: the macaroon lacks info:read; bake one with: ${BAKE}`,
    )
  })

  const lacking = [
    ['invoices:read', ['info:read', 'invoices:write']],
    ['invoices:write', ['info:read', 'invoices:read']],
  ] as const
  for (const [missing, permissions] of lacking) {
    test(`LND says that a macaroon lacks ${missing}`, async () => {
      const lnd = open({ macaroon: await testbed.alice.bake(...permissions) })
      assert.equal(
        (await lnd.checkAccess())?.sentence,
        `LND: the macaroon lacks ${missing}; bake one with: ${BAKE}`,
      )
    })
  }

  test('LND makes no invoice by asking what it may do', async () => {
    const count = async () => (await testbed.alice.get('/v1/invoices')).last_index_offset
    const before = await count()
    await open().checkAccess()
    assert.equal(await count(), before)
  })

  test('LND says that a macaroon is of another node, damaged or none', async () => {
    const sentence = `LND does not accept the macaroon (of another node, expired or damaged); bake one with: ${BAKE}`
    const damaged = macaroon.slice(0, -1) + (macaroon.endsWith('0') ? '1' : '0')
    for (const wrong of [testbed.bob.macaroon('admin'), damaged, '0201', 'zz', '']) {
      assert.equal((await open({ macaroon: wrong }).checkAccess())?.sentence, sentence)
    }
  })

  test('LND says that the certificate is of another node, or unknown', async () => {
    for (const certificate of [testbed.bob.certificate(), undefined]) {
      const sentence = (await open({ certificate }).checkAccess())?.sentence ?? ''
      assert.match(sentence, /shows a certificate that the cert of MAYFLY_LIGHTNING_URL does not/)
    }
  })
})

function aCursor() {
  let settleIndex = 0
  return {
    read: async () => settleIndex,
    write: async (value: number) => {
      settleIndex = value
    },
  }
}
