import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Db, StoreAway } from '../../src/db/db.ts'
import { readAlert } from '../../src/whisper/alerts.ts'
import { insertReceipt } from '../../src/whisper/receipt-store.ts'
import { createWhisper } from '../../src/whisper/service.ts'
import { createWhisperStore, insertWhisper, reserveCiphertext } from '../../src/whisper/store.ts'
import { aDatabase } from '../support/store.ts'
import { unit } from '../support/unit.ts'

const NOW = 1_800_000_012_345
const SECOND = 1_000

test('the time at which a read is told is spread over nearly a minute, so that it does not betray the moment', () => {
  const delays = Array.from(
    { length: 400 },
    () => (readAlert('whisper_x', NOW).notBefore ?? 0) - NOW,
  )
  const [least, most] = [Math.min(...delays), Math.max(...delays)]
  assert.ok(least >= 60 * SECOND && least < 70 * SECOND, `${least}`)
  assert.ok(most <= 115 * SECOND && most > 105 * SECOND, `${most}`)
})

test('a read is spent and told in one unit, which is on the disk before its bytes are given', async (t) => {
  const store = await aDatabase(t)
  await store.write(
    unit(
      ...reserveCiphertext({ ...ORDER, ciphertext: new Uint8Array(1) }, UNPAID_BYTES),
      ...insertWhisper({
        ...WHISPER,
        order_id: ORDER.orderId,
        read_token_hash: HASH,
        reads_left: 2,
        has_receipt: 1,
        has_switch: 0,
      }),
      insertReceipt({ ...WHISPER, read_limit: 2, receipt_token_hash: HASH, created_at: NOW }),
    ),
  )
  let writes = 0
  // The store goes away after one unit, as it may at any moment.
  const db: Db = {
    ...store,
    async write(one) {
      if (writes++ > 0) throw new StoreAway('gone')
      assert.equal(one.durability ?? 'flushed', 'flushed')
      return store.write(one)
    },
  }
  const service = createWhisper({
    db,
    clock: CLOCK,
    unpaidBytes: UNPAID_BYTES,
    bindings: { isOpen: async () => true },
    alerts: { tell: (id) => [{ text: TOLD, values: [id] }] },
  })
  const facts = await createWhisperStore(db).facts(WHISPER.public_id)
  assert.ok(facts)
  assert.equal((await service.read(facts)).kind, 'revealed')
  assert.deepEqual(await store.read(`select name from meta where value = 'told'`), [
    { name: WHISPER.public_id },
  ])
})

const HASH = new Uint8Array(32)
const ORDER = { orderId: 'order', clientNetwork: '203.0.113' }
const WHISPER = { public_id: 'whisper', reveal_at: null, expires_at: NOW + SECOND }
const UNPAID_BYTES = { perNetwork: 1_000, inAll: 10_000 }
const CLOCK = { now: () => NOW, isHeld: () => false, hasGoneBack: () => false }
const TOLD = `insert into meta (name, value) values ($1, 'told')`
