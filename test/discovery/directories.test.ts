import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { validate } from 'mppx/discovery'
import { LIMITS, OPEN_ORDERS } from '../../src/http/limits.ts'
import { type After, jsonFile, temporaryFolder } from '../support/folder.ts'
import { startServer, testClock } from '../support/server.ts'
import { createLedger } from '../support/stand-ins/ledger.ts'
import { startPhoenixd } from '../support/stand-ins/phoenixd.ts'

const MPPX = fileURLToPath(new URL('../../node_modules/mppx/dist/bin.js', import.meta.url))

/** As in production, where each look counts as a new order: the simulator limits no orders by itself. */
async function asInProduction(t: After): Promise<Record<string, string>> {
  const { perMinute, burst } = LIMITS.quote
  const rates = { quote: { perMinute, burst }, openOrders: OPEN_ORDERS }
  return { MAYFLY_RATE_LIMITS: await jsonFile(t, rates) }
}

type Offer = { amount: string; description: string }
/** A part of the document, or a reference to it. */
type Part = {
  $ref?: string
  in?: string
  required?: boolean
  content?: Record<string, { schema: object }>
}
type Operation = {
  'x-payment-info'?: { offers: Offer[] }
  parameters: Part[]
  responses: Record<string, Part>
}
type Described = {
  paths: Record<string, Record<string, Operation>>
  components: Record<string, Record<string, Part>>
}
type Plan = { planId: string; priceSats: number; available: boolean }
type Catalogue = { products: Record<string, { plans: Plan[] }> }
type Services = {
  services: { id: string; endpoint: string; method: string; pricing: { amount: number } }[]
}

const json = async <T>(url: string): Promise<T> => (await (await fetch(url)).json()) as T

/** The part itself, where the document refers to a shared one. */
function partOf({ components }: Described, part: Part): Part {
  const [, , kind = '', name = ''] = part.$ref?.split('/') ?? []
  return components[kind]?.[name] ?? part
}

/** The plans that the document lists, with their prices. */
async function listed(url: string): Promise<[id: string, amount: number][]> {
  const { services } = await json<Services>(`${url}/.well-known/l402-services`)
  return services.map(({ id, pricing }) => [id, pricing.amount])
}

test('a directory that asks with HEAD, GET and POST reads a whole L402 challenge each time, and then when to come again', async (t) => {
  const { url } = await startServer(t, await asInProduction(t))
  const { services: all } = await json<Services>(`${url}/.well-known/l402-services`)
  const services = all.filter(({ method }) => method === 'GET')
  const post = {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{}',
  }
  for (const { endpoint } of services) {
    for (const init of [{ method: 'HEAD' }, { method: 'GET' }, post]) {
      const { status, headers } = await fetch(endpoint, init)
      assert.equal(status, 402, `${init.method} ${endpoint}`)
      // The checks of a crawler: the scheme stands first, and both parts have their form.
      const challenge = headers.get('www-authenticate') ?? ''
      assert.match(challenge, /^L402 /)
      const [, macaroon = ''] = /macaroon="?([^",\s]+)"?/i.exec(challenge) ?? []
      const [, invoice = ''] = /invoice="?([^",\s]+)"?/i.exec(challenge) ?? []
      assert.match(macaroon, /^[A-Za-z0-9+/=_.-]{10,}$/)
      assert.match(invoice, /^ln(?:bc|tb|bcrt)[a-zA-Z0-9]{96,}$/)
    }
  }
  const more = OPEN_ORDERS - 3 * services.length
  const [first] = services
  for (let i = 0; i < more; i++) assert.equal((await fetch(first?.endpoint ?? '')).status, 402)
  const { status, headers } = await fetch(first?.endpoint ?? '')
  assert.equal(status, 429)
  const retryAfter = Number(headers.get('retry-after'))
  assert.ok(retryAfter > 0 && retryAfter <= 120, `${retryAfter}`)
})

test('the addresses and offers have the prices of the catalogue, and no plan that is not on sale', async (t) => {
  const changes = { catch: { spark: { priceSats: 7 } }, pulse: { spark: { available: false } } }
  const file = await jsonFile(t, changes)
  for (const environment of [{}, { MAYFLY_CATALOG: file }]) {
    const { url } = await startServer(t, environment)
    const { products } = await json<Catalogue>(`${url}/api/catalog`)
    const { paths } = await json<Described>(`${url}/openapi.json`)
    const expected: [string, number][] = []
    for (const name of ['catch', 'pulse', 'whisper']) {
      const plans = (products[name]?.plans ?? []).filter(({ available }) => available)
      expected.push(
        ...plans.map(({ planId, priceSats }): [string, number] => [`${name}-${planId}`, priceSats]),
      )
      // What probes an offer sends no bytes that could be sold.
      if (name === 'whisper') continue
      const { offers } = paths[`/api/buy/${name}/{planId}`]?.get?.['x-payment-info'] ?? {
        offers: [],
      }
      assert.deepEqual(
        offers.map(({ amount, description }) => [description.split(' ').at(-1), amount]),
        plans.map(({ planId, priceSats }) => [planId, String(priceSats)]),
      )
    }
    assert.deepEqual(await listed(url), expected)
  }
})

test('what is announced needs no header, and says what it answers; a purchase with a key is not', async (t) => {
  const { url } = await startServer(t)
  const document = await json<Described>(`${url}/openapi.json`)
  const { paths } = document
  const announced = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(([, operation]) => 'x-payment-info' in operation)
      .map(([method, operation]) => ({ name: `${method} ${path}`, ...operation })),
  )
  assert.deepEqual(
    announced.map(({ name }) => name),
    ['get /api/buy/catch/{planId}', 'get /api/buy/pulse/{planId}'],
  )
  for (const { name, parameters, responses } of announced) {
    const needed = parameters
      .map((each) => partOf(document, each))
      .filter(({ required }) => required)
    assert.deepEqual(
      needed.map(({ in: place }) => place),
      ['path'],
    )
    const { content } = partOf(document, responses['200'] ?? {})
    assert.ok(content?.['application/json']?.schema, name)
    assert.ok('402' in responses, name)
  }
})

test('a service whose node is away says what it will sell again, and that this is play on regtest', async (t) => {
  const clock = testClock()
  const node = await startPhoenixd({ clock, own: createLedger(clock) })
  t.after(node.close)
  const login = `phoenixd+http://:${encodeURIComponent(node.limitedPassword)}@`
  const { url } = await startServer(t, {
    MAYFLY_LIGHTNING_URL: node.baseUrl.replace('http://', login),
  })
  const before = await (await fetch(`${url}/.well-known/l402-services`)).text()
  await node.close()
  const { services } = JSON.parse(before) as Services
  assert.equal((await fetch(services[0]?.endpoint ?? '')).status, 503)
  assert.equal((await listed(url)).length, 9)
  const documents = ['l402-services', 'agent-skills/index.json', 'ai-catalog.json']
  for (const path of [
    ...documents.map((name) => `/.well-known/${name}`),
    '/llms.txt',
    '/openapi.json',
  ]) {
    const text = await (await fetch(url + path)).text()
    assert.ok(text.includes('This service runs on regtest: no real money moves.'), path)
    assert.ok(!text.includes('/simulator/'))
  }
})

test('the checks of mppx find nothing to complain about, with no option but the address', async (t) => {
  const file = await jsonFile(t, { catch: { spark: { available: false } } })
  const limited = await asInProduction(t)
  const { url } = await startServer(t, { ...limited, MAYFLY_CATALOG: file })
  assert.deepEqual(validate(await json<Record<string, unknown>>(`${url}/openapi.json`)), [])
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [MPPX, 'validate', url, '--output-json'],
    // It looks for other tools to pay with, for accounts in the home folder, and for a newer version.
    { env: { PATH: '', HOME: await temporaryFolder(t), NO_UPDATE_NOTIFIER: '1' } },
  )
  const { summary, endpoints } = JSON.parse(stdout) as {
    summary: Record<string, number>
    endpoints: { path: string }[]
  }
  assert.deepEqual(
    endpoints.map(({ path }) => path),
    ['/api/buy/catch/{planId}', '/api/buy/pulse/{planId}'],
  )
  assert.deepEqual(summary, { passed: 22, failed: 0, warnings: 0, suggested: 0, skipped: 0 })
})
