/** What every backend does before its node is asked, and with what the node answers. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { InvoiceRequest, NodeInfo } from '../../../src/lightning/lightning.ts'
import { createNode, type NodeCalls } from '../../../src/lightning/node/node.ts'
import { decodeInvoice } from '../../../src/protocol/bolt11.ts'
import { manualClock } from '../../support/shop.ts'
import { createLedger } from '../../support/stand-ins/ledger.ts'

const ASK = { amountMsat: 21_000, memo: 'Mayfly', expirySeconds: 900 }
const HASH = 'ab'.repeat(32)
const INFO: NodeInfo = { network: 'regtest', synced: true, nodeId: null }

function aWorld(changes: Partial<NodeCalls> = {}, amountStepMsat?: number) {
  const clock = manualClock()
  const own = createLedger(clock)
  const asked: unknown[][] = []
  const calls: NodeCalls = {
    info: async () => INFO,
    createInvoice: async (request: InvoiceRequest) => own.make(request),
    lookupInvoice: async () => ({ state: 'open' }),
    watch: async () => {},
    checkAccess: async () => null,
    close: async () => {},
    ...changes,
  }
  const noted = Object.fromEntries(
    Object.entries(calls).map(([name, call]) => [
      name,
      (...parameters: never[]) => {
        asked.push([name, ...parameters])
        return (call as (...parameters: never[]) => unknown)(...parameters)
      },
    ]),
  ) as NodeCalls
  const node = createNode(noted, {
    clock,
    ...(amountStepMsat === undefined ? {} : { amountStepMsat }),
  })
  return { node, clock, own, asked, names: () => asked.map(([name]) => name) }
}

test('a node is asked for its network once, before its first invoice, and not if that is known', async () => {
  const { node, asked, names } = aWorld()
  const made = await node.createInvoice(ASK)
  await node.createInvoice(ASK)
  assert.deepEqual(names(), ['info', 'createInvoice', 'createInvoice'])
  assert.deepEqual(asked[1], ['createInvoice', ASK])
  const { bolt11, paymentHash, network, expiresAt } = decodeInvoice(made.bolt11)
  assert.deepEqual(made, { bolt11, paymentHash, network, expiresAt })
  assert.equal(network, 'regtest')

  const known = aWorld()
  assert.equal(await known.node.info(), INFO)
  await known.node.createInvoice(ASK)
  assert.deepEqual(known.names(), ['info', 'createInvoice'])
})

test('an invoice of a node is for the network that the node said last', async () => {
  let network: NodeInfo['network'] = 'signet'
  const { node } = aWorld({ info: async () => ({ ...INFO, network }) })
  await assert.rejects(node.createInvoice(ASK), { message: /it is for regtest, not signet/ })
  network = 'regtest'
  await node.info()
  await node.createInvoice(ASK)
})

test("an invoice of a node is checked against what was asked for, and the service's clock", async () => {
  let skewMs = 0
  const world = aWorld({
    createInvoice: async (request) =>
      createLedger({ now: () => world.clock.now() + skewMs }).make(request),
  })
  await world.node.createInvoice(ASK)
  skewMs = 3_600_000
  await assert.rejects(world.node.createInvoice(ASK), { name: 'WrongInvoice', message: /clocks/ })
  const other = aWorld({ createInvoice: async () => other.own.make({ ...ASK, amountMsat: 1 }) })
  await assert.rejects(other.node.createInvoice(ASK), { message: /the amount differs/ })
})

test('an invoice that no node may make is refused before the node is asked anything', async () => {
  const whole = aWorld({}, 1_000)
  for (const amountMsat of [1, 999, 1_001, 21_500]) {
    await assert.rejects(whole.node.createInvoice({ ...ASK, amountMsat }), {
      name: 'RangeError',
      message: 'amountMsat must be a multiple of 1000',
    })
  }
  const { node, names } = aWorld()
  for (const changes of [{ amountMsat: 0 }, { amountMsat: 0.5 }, { expirySeconds: 0 }]) {
    await assert.rejects(node.createInvoice({ ...ASK, ...changes }), RangeError)
  }
  assert.deepEqual([...names(), ...whole.names()], [])
  await node.createInvoice({ ...ASK, amountMsat: 1 })
  await whole.node.createInvoice({ ...ASK, amountMsat: 1_000 })
})

test('a node is asked about payment hashes alone, and believed', async () => {
  const { node, asked } = aWorld({ lookupInvoice: async () => ({ state: 'settled' }) })
  for (const text of ['', 'ab', `${HASH}0`, `0${HASH}`, HASH.toUpperCase(), `${HASH}\n`]) {
    await assert.rejects(node.lookupInvoice(text), {
      name: 'TypeError',
      message: 'not a payment hash',
    })
  }
  assert.deepEqual(await node.lookupInvoice(HASH), { state: 'settled' })
  assert.deepEqual(asked, [['lookupInvoice', HASH]])
})

test('a watch of a node ends with its own signal, and when the node is closed', async () => {
  for (const [own, closed] of [
    [true, false],
    [false, true],
  ]) {
    const told: string[] = []
    let isClosed = false
    const { node } = aWorld({
      watch: async (onSettled, signal) => {
        onSettled(HASH)
        if (!signal.aborted) await new Promise((end) => signal.addEventListener('abort', end))
      },
      close: async () => {
        isClosed = true
      },
    })
    const stop = new AbortController()
    const ended = node.watch((hash) => told.push(hash), stop.signal)
    if (own) stop.abort()
    if (closed) await node.close()
    await ended
    assert.deepEqual(told, [HASH])
    assert.equal(isClosed, closed)
  }
})
