import assert from 'node:assert/strict'
import { suite, type TestContext, test } from 'node:test'
import { simulatorWallet } from '../../src/client/wallets/simulator.ts'
import type { Db } from '../../src/db/db.ts'
import { audit, nothingTold, settledBySimulator, type Told } from './accounting.ts'
import { poll } from './buying.ts'
import { endIn, paidExtension } from './extension.ts'
import { startServer } from './server.ts'
import { openDatabase } from './store.ts'
import { unit } from './unit.ts'

type Scene = { db: Db; ids: Record<'inbox' | 'monitor' | 'whisper', string> }

/** A correct store on which each product was sold and used. */
async function aStore(t: TestContext): Promise<Scene> {
  const server = await startServer(t)
  const wallet = simulatorWallet({ baseUrl: server.url })
  const terms = { planId: 'spark', wallet } as const
  const inbox = await server.mayfly.buyCatch(terms)
  const monitor = await server.mayfly.buyPulse(terms)
  const whisper = await server.mayfly.buyWhisper({ ...terms, data: new Uint8Array(9) })
  for (const body of ['one', 'two']) {
    await fetch(`${server.url}/c/${inbox.publicId}`, { method: 'POST', body })
  }
  await server.mayfly.pulse(monitor).ping()
  const { orderId } = await paidExtension(server, inbox)
  endIn(await poll(server, orderId))
  // Nobody pays this quote, and its bytes stay reserved.
  await fetch(`${server.url}/api/payments/whisper`, {
    method: 'POST',
    headers: {
      'content-type': 'application/octet-stream',
      'idempotency-key': crypto.randomUUID(),
      'x-whisper-plan': 'spark',
    },
    body: new Uint8Array(100),
  })
  await server.stop()
  const db = await openDatabase(server.databaseUrl)
  t.after(db.close)
  const ids = { inbox: inbox.publicId, monitor: monitor.publicId, whisper: whisper.publicId }
  return { db, ids }
}

/** Audits the store with this damage, and undoes the damage. */
async function auditWith(db: Db, damage: string, told?: Told): Promise<string[]> {
  const settled = await settledBySimulator(db)
  const undo = new Error('undo')
  let found: string[] = []
  await db
    .tx(async (tx) => {
      await tx.run(damage)
      // One connection answers one query at a time.
      let last: Promise<unknown> = Promise.resolve()
      const read: Db['read'] = (text, ...values) => {
        const answer = last.then(() => tx.run<never>(text, ...values))
        last = answer
        return answer
      }
      const inside: Db = { ...db, read }
      found = await audit({ db: inside, settled, ...(told ? { told } : {}) })
      throw undo
    })
    .catch((error: unknown) => assert.equal(error, undo))
  return found.map((sentence) => sentence.replaceAll(/[a-z]+_[0-9A-Za-z]{22}/g, '…'))
}

const NOTHING = `update meta set value = value`

suite('the accounting check', { timeout: 300_000 }, () => {
  test('the check finds nothing wrong with a store in order', async (t) => {
    const { db } = await aStore(t)
    assert.deepEqual(await auditWith(db, NOTHING), [])
  })

  const damages: Record<string, [string, string]> = {
    'a paid order that was not settled': [
      `update purchase_order set state = 'pending', public_id = null, seed = null, sealed_at = null,
         delivered_at = null where product = 'catch'`,
      'order … is pending, and its invoice is paid',
    ],
    'a capability that is gone': [
      `delete from pulse_monitor`,
      'settled order … has no pulse capability',
    ],
    'a capability that nobody bought': [
      `update purchase_order set public_id = 'nobody' where product = 'pulse'`,
      'capability … has not exactly one settled order',
    ],
    'a seed that is lost': [
      `update purchase_order set seed = null, sealed_at = null where product = 'whisper'`,
      'order … can never be delivered: its seed is gone',
    ],
    'an order that was paid for nothing': [
      `update purchase_order set state = 'paid_unfulfilled' where state = 'pending'`,
      'order … was paid for nothing',
    ],
    'an inbox beyond its limit': [
      `update catch_inbox_use set request_limit = 1`,
      'inbox … is beyond its limits',
    ],
    'an inbox that was extended without a payment': [
      `update catch_inbox_use set request_limit = request_limit + 100`,
      '… was not extended once for each paid extension',
    ],
    'an inbox that was not extended for its payment': [
      `update catch_inbox_use set expires_at = expires_at - 86400000`,
      '… was not extended once for each paid extension',
    ],
    'an event that is gone': [
      `delete from catch_event where sequence = 1`,
      'inbox … has lost events, or has some twice',
    ],
    'a counter of bytes that is off': [
      `update catch_inbox_use set stored_bytes = stored_bytes + 1`,
      'the counters of inbox … are not those of its events',
    ],
    'an event that counted something else than what is kept of it': [
      `update catch_event set kept_bytes = 9 where sequence = 1`,
      'event 1 of … has not counted what is kept of it',
    ],
    'a monitor beyond its limit': [
      `update pulse_monitor set heartbeat_limit = 0`,
      'monitor … is beyond its limit',
    ],
    'reads that were sold and have no bytes': [
      `delete from whisper_ciphertext where order_id in (select order_id from whisper)`,
      'WHISPER … promises reads that it has no bytes for',
    ],
    'bytes that belong to nobody': [`delete from whisper`, 'the bytes of order … belong to nobody'],
    'a reservation of an order that is over': [
      `update purchase_order set state = 'dead' where state = 'pending'`,
      'order … is over, and its bytes are still reserved',
    ],
    'a counter of unpaid bytes that is off': [
      `update whisper_unpaid set byte_count = byte_count - 1 where part = 'small'`,
      'the unpaid bytes of small are not the sum of its reservations',
    ],
  }

  test('the check finds each kind of damage, and says which it is', async (t) => {
    const { db } = await aStore(t)
    for (const [what, [damage, sentence]] of Object.entries(damages)) {
      const found = await auditWith(db, damage)
      assert.ok(found.includes(sentence), `${what}: ${JSON.stringify(found)}`)
    }
  })

  test('the check finds a WHISPER that went before its last read, even if its delivery is sealed', async (t) => {
    const { db, ids } = await aStore(t)
    const reads = (asked: number): Told => ({
      ...nothingTold(),
      reads: new Map([[ids.whisper, { sold: 3, asked, answered: 0 }]]),
    })
    await db.write(
      unit(
        {
          text: `update purchase_order set seed = null, sealed_at = 1 where product = 'whisper' and state = 'settled'`,
          values: [],
        },
        {
          text: `delete from whisper_ciphertext where order_id in (select order_id from whisper)`,
          values: [],
        },
      ),
    )
    const GONE = `delete from whisper`
    assert.deepEqual(await auditWith(db, GONE), ['settled order … has no whisper capability'])
    assert.deepEqual(await auditWith(db, GONE, reads(2)), [
      'settled order … has no whisper capability',
      'WHISPER … was asked for 2 reads and spent 3',
    ])
    assert.deepEqual(await auditWith(db, GONE, reads(3)), [])
  })

  test('the check finds reads that were spent and nobody asked for', async (t) => {
    const { db, ids } = await aStore(t)
    const told: Told = {
      ...nothingTold(),
      reads: new Map([[ids.whisper, { sold: 3, asked: 1, answered: 1 }]]),
    }
    assert.deepEqual(await auditWith(db, `update whisper set reads_left = 2`, told), [])
    assert.deepEqual(await auditWith(db, `update whisper set reads_left = 1`, told), [
      'WHISPER … was asked for 1 reads and spent 2',
    ])
  })

  test('the check finds what clients were told and the store does not hold', async (t) => {
    const { db, ids } = await aStore(t)
    const told: Told = {
      ...nothingTold(),
      delivered: new Map([['order_unknown', new Set(['a', 'b'])]]),
      stored: new Map([[ids.inbox, new Set(['one', 'three'])]]),
      reads: new Map([[ids.whisper, { sold: 3, asked: 1, answered: 1 }]]),
      pinged: new Map([[ids.monitor, 2]]),
      receipts: new Map([['gate_intent_x', new Set(['a', 'b'])]]),
    }
    assert.deepEqual(await auditWith(db, NOTHING, told), [
      'order order_unknown was delivered as 2 answers',
      'order order_unknown was delivered, and the store knows nothing of it',
      'inbox … has lost 1 events',
      'WHISPER … gave 1 reads and spent 0',
      'monitor … has lost 1 pings',
      'intent gate_intent_x has 2 receipts',
    ])
  })
})
