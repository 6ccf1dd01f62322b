/** When the checkout is open: the node alone decides, and is asked again and again. */
import assert from 'node:assert/strict'
import { suite, type TestContext, test } from 'node:test'
import type { Log } from '../../src/lib/log.ts'
import type { Lightning } from '../../src/lightning/lightning.ts'
import { createNodeHealth, type NoteNode } from '../../src/payment/health.ts'
import { SECOND } from '../support/shop.ts'

type Info = Awaited<ReturnType<Lightning['info']>>

const PROBE_EVERY_MS = 5 * SECOND
const [NODE, OTHER_NODE] = ['02'.padEnd(66, 'a'), '03'.padEnd(66, 'b')] as const
const NOT_SYNCED = 'the node is not in sync with the chain'

function aNode(noteNode?: NoteNode) {
  const node = {
    answer: { network: 'regtest', synced: true, nodeId: NODE } as Info | Error,
    /** Set to let the node answer only when it is told to. */
    held: null as Promise<void> | null,
    asked: 0,
    logged: [] as ({ event: string } & Record<string, unknown>)[],
  }
  const lightning = {
    async info() {
      node.asked++
      await node.held
      if (node.answer instanceof Error) throw node.answer
      return node.answer
    },
  } as Lightning
  const note: Log['info'] = (line) => void node.logged.push(line)
  const log: Log = { info: note, warn: note, error: note }
  const health = createNodeHealth({
    lightning,
    network: 'regtest',
    log,
    ...(noteNode === undefined ? {} : { noteNode }),
  })
  return { node, health }
}

/** The probes begin by a timer that the test moves, and end in microtasks. */
async function started(t: TestContext, noteNode?: NoteNode) {
  t.mock.timers.enable({ apis: ['setInterval'] })
  const { node, health } = aNode(noteNode)
  const ending = new AbortController()
  await health.start(ending.signal)
  const answers = async (answer: Info | Error): Promise<boolean> => {
    node.answer = answer
    t.mock.timers.tick(PROBE_EVERY_MS)
    await new Promise((resolve) => setImmediate(resolve))
    return health.isHealthy()
  }
  return { node, health, ending, answers }
}

const UP: Info = { network: 'regtest', synced: true, nodeId: NODE } as Info

suite('the health of the node', () => {
  test('nothing is sold before the node has answered', async (t) => {
    const { health } = aNode()
    assert.equal(health.isHealthy(), false)
    const ending = new AbortController()
    t.after(() => ending.abort())
    await health.start(ending.signal)
    assert.equal(health.isHealthy(), true)
  })

  test('the checkout follows the node, and each change is logged once, with its reason', async (t) => {
    const { node, health, ending, answers } = await started(t)
    assert.equal(health.isHealthy(), true)
    assert.equal(await answers({ ...UP, synced: false }), false)
    assert.equal(await answers({ ...UP, synced: false }), false)
    assert.equal(await answers({ ...UP, network: 'mainnet' }), false)
    assert.equal(await answers(new Error('connection refused')), false)
    assert.equal(await answers(UP), true)
    assert.equal(await answers(UP), true)
    assert.deepEqual(node.logged, [
      { event: 'checkout.open' },
      { event: 'checkout.closed', reason: NOT_SYNCED },
      { event: 'checkout.closed', reason: 'the node is on mainnet' },
      { event: 'checkout.closed', reason: 'connection refused' },
      { event: 'checkout.open' },
    ])
    ending.abort()
  })

  test('the node is asked every five seconds until the service ends', async (t) => {
    const { node, ending, answers } = await started(t)
    assert.equal(node.asked, 1)
    t.mock.timers.tick(PROBE_EVERY_MS - 1)
    assert.equal(node.asked, 1)
    t.mock.timers.tick(1)
    await new Promise((resolve) => setImmediate(resolve))
    assert.equal(node.asked, 2)
    await answers(UP)
    assert.equal(node.asked, 3)
    ending.abort()
    await answers(UP)
    assert.equal(node.asked, 3)
  })

  test('a call that failed closes the checkout until the node answers, and asks it at once', async (t) => {
    const { node, health, ending } = await started(t)
    health.doubt()
    assert.equal(health.isHealthy(), false)
    assert.equal(node.asked, 2)
    await new Promise((resolve) => setImmediate(resolve))
    assert.equal(health.isHealthy(), true)
    assert.deepEqual(node.logged.slice(1), [
      { event: 'checkout.closed', reason: 'an invoice could not be made' },
      { event: 'checkout.open' },
    ])
    ending.abort()
  })

  test('a doubt does not replace the reason for which the checkout is closed already', async (t) => {
    const { node, health, ending, answers } = await started(t)
    await answers({ ...UP, synced: false })
    health.doubt()
    await new Promise((resolve) => setImmediate(resolve))
    assert.deepEqual(node.logged.at(-1), { event: 'checkout.closed', reason: NOT_SYNCED })
    assert.equal(node.logged.length, 2)
    ending.abort()
  })

  test('a node that takes long is not asked a second time meanwhile', async (t) => {
    const { node, health, ending } = await started(t)
    const { promise, resolve } = Promise.withResolvers<void>()
    node.held = promise
    for (let i = 0; i < 3; i++) health.doubt()
    assert.equal(node.asked, 2)
    resolve()
    await new Promise((later) => setImmediate(later))
    health.doubt()
    assert.equal(node.asked, 3)
    ending.abort()
  })
})

suite('the node that the store has met', () => {
  test('a node is noted once, and each other one again, and another than before is told', async (t) => {
    const noted: string[] = []
    const { node, ending, answers } = await started(t, async (nodeId) => {
      noted.push(nodeId)
      return noted.at(-2) ?? null
    })
    await answers(UP)
    await answers({ ...UP, nodeId: OTHER_NODE })
    await answers({ ...UP, nodeId: OTHER_NODE })
    assert.deepEqual(noted, [NODE, OTHER_NODE])
    assert.deepEqual(
      node.logged.filter(({ event }) => event !== 'checkout.open'),
      [{ event: 'lightning.node_changed', previousNodeId: NODE, nodeId: OTHER_NODE }],
    )
    ending.abort()
  })

  test('a node on another network and one without an id are not noted', async (t) => {
    const noted: string[] = []
    const { node, health, ending, answers } = await started(t, async (nodeId) => {
      noted.push(nodeId)
      return null
    })
    noted.length = 0
    await answers({ ...UP, network: 'mainnet', nodeId: OTHER_NODE })
    assert.equal(health.nodeId(), NODE, 'who signs our invoices')
    assert.equal(await answers({ ...UP, nodeId: null }), true)
    assert.deepEqual(noted, [])
    assert.ok(!node.logged.some(({ event }) => event.startsWith('lightning.')))
    ending.abort()
  })

  test('a store that cannot note the node stops no sales, and is asked again', async (t) => {
    let failures = 1
    let notes = 0
    const { node, health, ending, answers } = await started(t, async () => {
      notes++
      if (failures-- > 0) throw new Error('the store is away')
      return null
    })
    assert.equal(health.isHealthy(), true)
    assert.deepEqual(node.logged, [
      { event: 'lightning.node_not_noted', reason: 'the store is away' },
      { event: 'checkout.open' },
    ])
    await answers(UP)
    await answers(UP)
    assert.equal(notes, 2)
    ending.abort()
  })
})
