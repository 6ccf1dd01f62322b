import assert from 'node:assert/strict'
import { open, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import {
  createGate,
  fileStore,
  type GateOptions,
  memoryStore,
} from '../../src/gate-middleware/middleware.ts'
import { temporaryFolder } from '../support/folder.ts'
import { aShop, aVisit, proofOf } from './shop.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE

describe('a restart', () => {
  test('a restart lets nobody in again where the guard has a folder', async (t) => {
    const shop = await aShop(t)
    const folder = await temporaryFolder(t)
    const again = () => anApi(shop, { store: fileStore(folder, shop.clock.now) })
    const proof = await aProof(shop)
    assert.equal((await again()(proof)).status, 200)
    assert.equal((await again()(proof)).status, 409)
    shop.clock.advance(HOUR)
    assert.notEqual((await again()(proof)).status, 200)
    assert.equal(shop.served.length, 1)
  })

  test('a folder that could not be made is used once it can be', async (t) => {
    const folder = join(await temporaryFolder(t), 'gate')
    await writeFile(folder, 'in the way')
    const store = fileStore(folder)
    await assert.rejects(async () => store.add('key', HOUR), { code: 'EEXIST' })
    await rm(folder)
    assert.equal(await store.add('key', HOUR), true)
  })

  test('a restart admits each receipt of the last five minutes once more where the guard has no folder, as the page says', async (t) => {
    const shop = await aShop(t)
    const again = () => anApi(shop, {})
    const proof = await aProof(shop)
    assert.equal((await again()(proof)).status, 200)
    assert.equal((await again()(proof)).status, 200)
    shop.clock.advance(301_000)
    assert.equal((await again()(proof)).status, 403)
    assert.equal(shop.served.length, 2)
  })

  test('a restart of servers that share a folder lets one request in', async (t) => {
    const shop = await aShop(t)
    const folder = await temporaryFolder(t)
    const servers = Array.from({ length: 4 }, () =>
      anApi(shop, { store: fileStore(folder, shop.clock.now) }),
    )
    const proof = await aProof(shop)
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, i) => servers[i % 4]?.(proof) ?? Response.error()),
    )
    assert.equal(answers.filter(({ status }) => status === 200).length, 1)
    assert.equal(shop.served.length, 1)
    // Another server may be at it still, so the payer is told to ask again.
    const refused = answers.filter(({ headers }) => headers.get('retry-after') !== null)
    assert.ok(refused.length > 0)
    // And does not read that it is used while the service cannot say that it was given back.
    const unsure = anApi(shop, {
      store: fileStore(folder, shop.clock.now),
      fetch: async (input, init) =>
        String(input).endsWith('.json')
          ? shop.options.fetch(input, init)
          : Response.json({ error: 'rate limited' }, { status: 429 }),
    })
    const receipt = answers.find(({ status }) => status === 200)?.headers.get('gate-receipt') ?? ''
    assert.equal((await unsure({ 'gate-receipt': receipt })).status, 503)
  })

  for (const [what, away] of [
    ['a restart of the service', () => Promise.reject(new Error('away'))],
    ['a fault of the service', async () => new Response(null, { status: 503 })],
  ] as const) {
    test(`a failure that ${what} kept from being reported is reported when the payer comes again`, async (t) => {
      const shop = await aShop(t)
      let isAway = true
      const api = anApi(shop, {
        fetch: (input, init) =>
          isAway && String(input).endsWith('/give-back') ? away() : shop.options.fetch(input, init),
      })
      const proof = await aProof(shop)
      shop.script.answer = () => new Response(null, { status: 500 })
      assert.equal((await api(proof)).status, 500)
      shop.script.answer = () => new Response('a cat')
      assert.equal((await api(proof)).status, 503)
      isAway = false
      shop.clock.advance(HOUR)
      assert.equal((await api(proof)).status, 200)
      assert.equal(shop.served.length, 2)
    })
  }

  test('a restart of the service with an older store lets nobody in again: the key is the intent', async (t) => {
    const shop = await aShop(t)
    const api = anApi(shop, {})
    const proof = await aProof(shop)
    assert.equal((await api(proof)).status, 200)
    // As after a backup from before the payment was proven.
    await shop.forget(proof['x-gate-intent'] ?? '')
    shop.clock.advance(HOUR)
    assert.equal((await api(proof)).status, 409)
    assert.equal(shop.served.length, 1)
  })
})

describe('a receipt that ran out unused', () => {
  test('a receipt that ran out unused lets its request in, and no other, where the guard has a folder that is older', async (t) => {
    const shop = await aShop(t)
    const store = fileStore(await temporaryFolder(t), shop.clock.now)
    const proof = await aProof(shop)
    assert.equal((await anApi(shop, { store })(proof)).status, 200)
    shop.clock.advance(2 * MINUTE)
    const receipt = await shop.receipt()
    shop.clock.advance(HOUR)
    const late = anApi(shop, { store })
    const other = await late({ 'gate-receipt': receipt }, 'another body')
    assert.deepEqual([other.status, await other.json()], [403, { error: 'invalid receipt' }])
    assert.equal((await late({ 'gate-receipt': receipt })).status, 200)
    assert.equal((await late({ 'gate-receipt': receipt })).status, 409)
    assert.equal((await anApi(shop, { store })({ 'gate-receipt': receipt })).status, 409)
    assert.equal(shop.served.length, 2)
  })

  test('a receipt that ran out is told to be used after a restart where the folder knows that it let its request in', async (t) => {
    const shop = await aShop(t)
    const store = fileStore(await temporaryFolder(t), shop.clock.now)
    assert.equal((await anApi(shop, { store })(await aProof(shop))).status, 200)
    shop.clock.advance(2 * MINUTE)
    const proof = await aProof(shop)
    assert.equal((await anApi(shop, { store })(proof)).status, 200)
    shop.clock.advance(HOUR)
    const answer = await anApi(shop, { store })(proof)
    assert.deepEqual([answer.status, await answer.json()], [409, { error: 'receipt used' }])
    // A server that failed it may have yet to give it back.
    assert.equal(answer.headers.get('retry-after'), '5')
    assert.equal(shop.served.length, 2)
  })

  test('a receipt that ran out unused lets nobody in where its guard is in memory: another process may have let it in', async (t) => {
    const shop = await aShop(t)
    const [one, other] = [anApi(shop, {}), anApi(shop, { store: memoryStore(shop.clock.now) })]
    shop.clock.advance(2 * MINUTE)
    const proof = await aProof(shop)
    assert.equal((await one(proof)).status, 200)
    shop.clock.advance(HOUR)
    assert.equal((await other(proof)).status, 403)
    assert.equal((await one(proof)).status, 409)
    assert.equal(shop.served.length, 1)
  })

  test('a receipt that ran out unused lets nobody in where the memory was full and forgot it', async (t) => {
    const shop = await aShop(t)
    const api = anApi(shop, { store: memoryStore(shop.clock.now, 1) })
    shop.clock.advance(2 * MINUTE)
    const proof = await aProof(shop)
    assert.equal((await api(proof)).status, 200)
    shop.clock.advance(HOUR)
    assert.equal((await api(await aProof(shop))).status, 200)
    shop.clock.advance(HOUR)
    assert.equal((await api(proof)).status, 409)
    assert.equal(shop.served.length, 2)
  })

  test('a receipt that ran out unused lets nobody in where the folder was lost', async (t) => {
    const shop = await aShop(t)
    const folder = await temporaryFolder(t)
    const api = anApi(shop, { store: fileStore(folder, shop.clock.now) })
    assert.equal((await api(await aProof(shop))).status, 200)
    shop.clock.advance(2 * MINUTE)
    const proof = await aProof(shop)
    assert.equal((await api(proof)).status, 200)
    for (const name of await readdir(folder)) await rm(join(folder, name), { recursive: true })
    shop.clock.advance(HOUR)
    const restarted = anApi(shop, { store: fileStore(folder, shop.clock.now) })
    assert.equal((await restarted(proof)).status, 403)
    assert.equal((await api(proof)).status, 409)
    assert.equal(shop.served.length, 2)
  })

  test('a receipt that ran out unused lets nobody in where the store does not say since when it remembers', async (t) => {
    const shop = await aShop(t)
    const { add } = fileStore(await temporaryFolder(t), shop.clock.now)
    const api = anApi(shop, { store: { add } })
    shop.clock.advance(2 * MINUTE)
    const receipt = await shop.receipt()
    shop.clock.advance(HOUR)
    assert.equal((await api({ 'gate-receipt': receipt })).status, 403)
    assert.equal(shop.served.length, 0)
  })

  test('a receipt that ran out unused lets nobody in after 31 days, when a folder may have forgotten that it did', async (t) => {
    const shop = await aShop(t)
    const store = fileStore(await temporaryFolder(t), shop.clock.now)
    const api = anApi(shop, { store })
    assert.equal((await api(await aProof(shop))).status, 200)
    shop.clock.advance(2 * MINUTE)
    const proof = await aProof(shop)
    assert.equal((await api(proof)).status, 200)
    shop.clock.advance(31 * 24 * HOUR)
    // Every part of the folder is swept.
    for (let i = 0; i < 256; i++) {
      await store.add(`another ${i}`, 1)
      shop.clock.advance(5 * MINUTE)
    }
    const { status, headers } = await api(proof)
    assert.ok([403, 409].includes(status))
    assert.equal(headers.get('www-authenticate'), null)
    assert.equal(shop.served.length, 2)
  })

  test('a receipt that ran out unused lets nobody in where the folder cannot say when it began', async (t) => {
    const shop = await aShop(t)
    const folder = await temporaryFolder(t)
    // As after a loss of power while it was made.
    await writeFile(join(folder, 'since'), '')
    const api = anApi(shop, { store: fileStore(folder, shop.clock.now) })
    shop.clock.advance(2 * MINUTE)
    const receipt = await shop.receipt()
    shop.clock.advance(HOUR)
    assert.equal((await api({ 'gate-receipt': receipt })).status, 403)
    assert.equal(shop.served.length, 0)
  })
})

describe('a folder', () => {
  test('a folder takes a key once, of 50 callers at once, and keeps no key in the clear', async (t) => {
    const folder = await temporaryFolder(t)
    const stores = [fileStore(folder), fileStore(folder)]
    const added = await Promise.all(
      Array.from({ length: 50 }, (_, i) => stores[i % 2]?.add('gate_intent_x.0', HOUR)),
    )
    assert.equal(added.filter(Boolean).length, 1)
    assert.equal(await fileStore(folder).add('gate_intent_x.1', HOUR), true)
    for (const file of await filesIn(folder)) {
      assert.equal(`${file} ${await readFile(file, 'utf8')}`.includes('gate_intent'), false)
    }
  })

  test('a folder forgets what is over, bit by bit, and nothing else', async (t) => {
    const folder = await temporaryFolder(t)
    let now = Date.now()
    const store = fileStore(folder, () => now)
    const keys = async () => (await filesIn(folder)).filter((file) => !file.endsWith('since'))
    await store.add('torn', HOUR)
    // As after a loss of power: nobody knows whether it let somebody in.
    for (const file of await keys()) await writeFile(file, '')
    await store.add('lasting', 30 * HOUR)
    for (let i = 0; i < 20; i++) await store.add(`old ${i}`, HOUR)
    now += 2 * HOUR
    for (let i = 0; i < 256; i++) {
      await store.add('new', HOUR)
      now += 5 * 60_000
    }
    assert.ok((await keys()).length <= 3)
    for (const key of ['torn', 'lasting']) assert.equal(await store.add(key, HOUR), false, key)
  })

  test('a key that a folder could not flush is free again, for nobody was let in by it', async (t) => {
    const folder = await temporaryFolder(t)
    const store = fileStore(folder)
    await store.add('another', HOUR)
    const handle = await open(folder)
    const files = Object.getPrototypeOf(handle) as typeof handle
    await handle.close()
    const failing = t.mock.method(files, 'sync', () =>
      Promise.reject(new Error('the disk is full')),
    )
    await assert.rejects(async () => store.add('gate_intent_x.0', HOUR), /disk is full/)
    failing.mock.restore()
    assert.equal(await store.add('gate_intent_x.0', HOUR), true)
  })

  test('a folder that cannot be written lets nobody in', async (t) => {
    const shop = await aShop(t)
    const api = anApi(shop, { store: fileStore('/dev/null/nowhere') })
    assert.equal((await api(await aProof(shop))).status, 503)
    assert.equal(shop.served.length, 0)
  })
})

test('memory that is full refuses rather than forgets whose receipt is good, and forgets what is over', () => {
  let now = 0
  const store = memoryStore(() => now, 2)
  assert.deepEqual([store.add('a', HOUR), store.add('b', 30 * HOUR)], [true, true])
  assert.equal(store.add('c', HOUR), false)
  now = HOUR / 4 + 1
  assert.equal(store.add('c', HOUR), true)
  assert.equal(store.add('b', HOUR), false)
  now = 40 * HOUR
  assert.equal(store.add('b', HOUR), true)
})

type Shop = Awaited<ReturnType<typeof aShop>>

function anApi(shop: Shop, options: Partial<GateOptions>) {
  const handle = createGate({ ...shop.options, ...options }).fetch('render', shop.handler)
  return (headers: Record<string, string>, body?: string): Promise<Response> =>
    handle(aVisit(headers, body === undefined ? {} : { body }))
}

async function aProof(shop: Shop): Promise<Record<string, string>> {
  const quote = await shop.quote()
  return proofOf(quote, await shop.pay(quote.bolt11))
}

async function filesIn(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  return entries
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name))
}
