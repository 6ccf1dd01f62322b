import assert from 'node:assert/strict'
import { hash, randomUUID } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { onHangUp } from '../../src/cli/operator/serve.ts'
import { PRODUCT_NAMES } from '../../src/lib/product-names.ts'
import { RELOADED, readOptions } from '../../src/service/config.ts'
import { openOrder, purchase, quoteOf } from '../support/buying.ts'
import { type After, temporaryFolder } from '../support/folder.ts'
import { startProgram } from '../support/program.ts'
import { startServer, type TestServer } from '../support/server.ts'

/** A server with files of plans and rates that the test can change. */
async function aServer(t: After, catalog: object = {}, rates: object = {}) {
  const folder = await temporaryFolder(t)
  const files = { catalog: join(folder, 'catalog.json'), rates: join(folder, 'rates.json') }
  const change = async (file: keyof typeof files, text: object | string): Promise<void> =>
    writeFile(files[file], typeof text === 'string' ? text : JSON.stringify(text))
  await change('catalog', catalog)
  await change('rates', rates)
  const environment = {
    MAYFLY_CATALOG: files.catalog,
    MAYFLY_RATE_LIMITS: files.rates,
    // Which wraps the limits.
    MAYFLY_METRICS_PORT: '0',
  }
  const server = await startServer(t, environment)
  return { server, change, reload: () => server.reload(() => readOptions(RELOADED, environment)) }
}

const lastLine = ({ logged }: TestServer) => JSON.parse(logged.at(-1) ?? '{}')

const textOf = async ({ url }: TestServer, path: string): Promise<string> => {
  const answer = await fetch(url + path)
  return answer.status === 200 ? answer.text() : String(answer.status)
}
const catalogue = async (server: TestServer) => JSON.parse(await textOf(server, '/api/catalog'))

/** The documents with a price or a plan in them. */
const DOCUMENTS = [
  '/openapi.json',
  '/llms.txt',
  '/.well-known/l402-services',
  '/.well-known/agent-skills/mayfly-catch/SKILL.md',
  '/.well-known/ai-catalog.json',
] as const

const priced = (priceSats: number) => ({ catch: { spark: { priceSats } } })

suite('the plans and rates are reloaded', () => {
  test('a new price is in the catalogue, on the page, in all documents and in the next quote, and an open quote keeps its own', async (t) => {
    const { server, change, reload } = await aServer(t, priced(1_111))
    const key = randomUUID()
    const open = await openOrder(server, { key })
    assert.equal(open.amountSats, 1_111)
    const before = await Promise.all(DOCUMENTS.map((path) => textOf(server, path)))
    assert.match(await textOf(server, '/'), /<b>1,111 sat<\/b>/)
    await change('catalog', priced(2_222))
    reload()
    assert.match(await textOf(server, '/'), /<b>2,222 sat<\/b>/)
    assert.deepEqual(lastLine(server).plans, ['catch.spark'])
    assert.equal((await catalogue(server)).products.catch.plans[0].priceSats, 2_222)
    for (const [i, path] of DOCUMENTS.entries()) {
      const now = await textOf(server, path)
      assert.equal(now, before[i]?.replaceAll('1111', '2222'), path)
    }
    const named = before.map((text) => text.includes('1111'))
    assert.deepEqual(named.slice(0, 1), [true], 'the prices are in openapi.json')
    assert.ok(named[2] && named[3], 'and in the list of services and in the skill')
    const index = JSON.parse(await textOf(server, '/.well-known/agent-skills/index.json'))
    const skill = hash('sha256', await textOf(server, DOCUMENTS[3]))
    assert.equal(index.skills[0].digest, `sha256:${skill}`)
    assert.equal(quoteOf(await purchase(server, {})).amountSats, 2_222)
    const repeated = quoteOf(await purchase(server, { key }))
    assert.deepEqual([repeated.orderId, repeated.amountSats], [open.orderId, 1_111])
    await server.pay(open.bolt11)
    assert.equal((await purchase(server, { key })).status, 200)
  })

  test('the next quote of every product has the new price', async (t) => {
    const { server, change, reload } = await aServer(t)
    const priceOf = async (product: string): Promise<number> => {
      const isWhisper = product === 'whisper'
      const answer = await purchase(server, {
        target: `/api/payments/${product}`,
        ...(isWhisper ? { body: new Uint8Array(64).fill(1) } : {}),
        headers: isWhisper
          ? { 'content-type': 'application/octet-stream', 'x-whisper-plan': 'spark' }
          : {},
      })
      return quoteOf(answer).amountSats
    }
    const dear = { spark: { priceSats: 7_777 } }
    await change('catalog', Object.fromEntries(PRODUCT_NAMES.map((name) => [name, dear])))
    reload()
    for (const product of PRODUCT_NAMES) assert.equal(await priceOf(product), 7_777, product)
  })

  test('a plan is taken off sale and put back, and its documents with it', async (t) => {
    const { server, change, reload } = await aServer(t)
    const all = {
      spark: { available: false },
      standard: { available: false },
      long: { available: false },
    }
    const skill = '/.well-known/agent-skills/mayfly-catch/SKILL.md'
    assert.notEqual(await textOf(server, skill), '404')
    await change('catalog', { catch: all })
    reload()
    assert.equal((await purchase(server, {})).text, '{"error":"invalid plan"}')
    assert.equal(await textOf(server, skill), '404')
    assert.ok(!(await textOf(server, '/.well-known/l402-services')).includes('catch'))
    const index = await textOf(server, '/.well-known/agent-skills/index.json')
    assert.ok(!index.includes('mayfly-catch') && index.includes('mayfly-pulse'))
    await change('catalog', {})
    reload()
    assert.equal((await purchase(server, {})).status, 402)
    assert.notEqual(await textOf(server, skill), '404')
  })

  test('the largest whisper follows its plan', async (t) => {
    const { server, change, reload } = await aServer(t)
    const send = async (bytes: number, target = '/api/payments/whisper'): Promise<string> => {
      const { status, text } = await purchase(server, {
        target,
        body: new Uint8Array(bytes).fill(1),
        headers: { 'content-type': 'application/octet-stream', 'x-whisper-plan': 'spark' },
      })
      return status === 402 ? '' : text
    }
    assert.match(await send(70_000), /ciphertext too large/)
    assert.match(await send(9_000_000), /ciphertext too large/)
    const plan = { maxCiphertextBytes: 20_000_000 }
    await change('catalog', { whisper: { spark: plan } })
    reload()
    assert.deepEqual([await send(70_000), await send(9_000_000)], ['', ''])
    assert.equal(await send(9_000_000, '/api/buy/whisper/spark'), '')
  })

  test('rates change, and a limit that stays keeps its count', async (t) => {
    const two = { perMinute: 2, burst: 2 }
    const { server, change, reload } = await aServer(t, {}, { catalog: two, quote: two })
    const ask = async () => (await fetch(`${server.url}/api/catalog`)).status
    assert.deepEqual([await ask(), await ask(), await ask()], [200, 200, 429])
    assert.equal((await purchase(server, {})).status, 402)
    await change('rates', { catalog: { perMinute: 3, burst: 3 }, quote: two, openOrders: 2 })
    reload()
    assert.deepEqual(lastLine(server).limits, ['openOrders', 'catalog'])
    assert.deepEqual([await ask(), await ask(), await ask(), await ask()], [200, 200, 200, 429])
    assert.equal((await purchase(server, {})).status, 402)
    assert.equal((await purchase(server, {})).status, 429)
    await change('rates', { catalog: null, quote: null, openOrders: 2 })
    reload()
    assert.equal(await ask(), 200)
    assert.equal((await purchase(server, {})).status, 429, 'two orders are open')
    await change('rates', { catalog: null, quote: null, openOrders: 3 })
    reload()
    assert.equal((await purchase(server, {})).status, 402)
  })

  for (const [what, file, text] of [
    ['a torn file of plans', 'catalog', '{"catch": {'],
    ['a plan that cannot be sold', 'catalog', '{"catch": {"spark": {"priceSats": 0}}}'],
    ['a torn file of rates', 'rates', '{'],
  ] as const) {
    test(`${what} is refused with all that would be reloaded with it`, async (t) => {
      const { server, change, reload } = await aServer(t, priced(1_111), { quote: null })
      await change('catalog', priced(2_222))
      await change('rates', { quote: { perMinute: 1, burst: 1 } })
      await change(file, text)
      reload()
      const { event, level, reason } = lastLine(server)
      assert.deepEqual([event, level], ['settings.refused', 50])
      assert.match(reason, file === 'catalog' ? /MAYFLY_CATALOG/ : /MAYFLY_RATE_LIMITS/)
      assert.equal(quoteOf(await purchase(server, {})).amountSats, 1_111)
      assert.equal((await purchase(server, {})).status, 402)
      await change('catalog', priced(3_333))
      await change('rates', { quote: null })
      reload()
      assert.equal(quoteOf(await purchase(server, {})).amountSats, 3_333)
    })
  }
})

suite('SIGHUP', () => {
  test('SIGHUP reloads the plans of the real program, which goes on', async (t) => {
    const folder = await temporaryFolder(t)
    const file = join(folder, 'catalog.json')
    await writeFile(file, '{}')
    const program = await startProgram(t, join(folder, 'mayfly.db'), {
      environment: { MAYFLY_CATALOG: file },
    })
    await writeFile(file, JSON.stringify(priced(4_321)))
    program.signal('SIGHUP')
    assert.deepEqual((await program.saw('settings.reloaded')).plans, ['catch.spark'])
    const { products } = await (await fetch(`${program.url}/api/catalog`)).json()
    assert.equal(products.catch.plans[0].priceSats, 4_321)
    await writeFile(file, 'torn')
    program.signal('SIGHUP')
    assert.match(String((await program.saw('settings.refused')).reason), /MAYFLY_CATALOG/)
    assert.equal((await fetch(`${program.url}/health`)).status, 200)
    program.signal('SIGTERM')
    assert.deepEqual(await program.ended, { code: 0, signal: null })
  })

  test('SIGHUP means to stop once the terminal of the service is gone', (t) => {
    const before = process.listeners('SIGHUP')
    const ours = () => process.listeners('SIGHUP').filter((one) => !before.includes(one))
    t.after(() => {
      for (const one of ours()) process.off('SIGHUP', one)
    })
    const told: string[] = []
    let hasTerminal = true
    onHangUp(
      (what) => told.push(what),
      () => hasTerminal,
    )
    const [listener] = ours()
    listener?.('SIGHUP')
    hasTerminal = false
    listener?.('SIGHUP')
    assert.deepEqual(told, ['reload', 'stop'])
  })
})
