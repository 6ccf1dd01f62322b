/** GATE's own routes over loopback, on a new store and the simulator, without the rest of the service. */
import { randomUUID } from 'node:crypto'
import type { AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'
import { pino } from 'pino'
import type { OutboundRules } from '../../src/alerts/outbound-rules.ts'
import type { GateQuote } from '../../src/client/index.ts'
import { openGate, openProvider } from '../../src/gate/open.ts'
import { GATE } from '../../src/gate/product.ts'
import { createProjects } from '../../src/gate/projects.ts'
import { parseRouteSpec } from '../../src/gate/route-spec.ts'
import { createApp } from '../../src/http/app.ts'
import { createLimits, LIMITS, type Rate } from '../../src/http/limits.ts'
import type { ProductParts } from '../../src/http/product.ts'
import type { Log } from '../../src/lib/log.ts'
import { createSimulator } from '../../src/lightning/simulator.ts'
import { createSecrets } from '../../src/secrets/secrets.ts'
import { BODY, challengeOf, PATH } from './gate-request.ts'
import { type Fields, send as sendHttp } from './http.ts'
import { paymentAuthorization } from './payer.ts'
import { testClock } from './server.ts'
import { aMigratedDatabaseUrl, openDatabase } from './store.ts'

const ROUTES = ['render=POST:/render/*:50', 'ping=GET:/ping:1']

export type Shop = Awaited<ReturnType<typeof aShop>>

/** Two projects on one GATE, of which calls are for the first. `rates` are by the names of the limits. */
export async function aShop(
  t: TestContext,
  {
    rates = {},
    isSimulated = true,
  }: {
    rates?: Record<string, Rate>
    /** Whether the simulator takes the place of providers when intents are made. */
    isSimulated?: boolean
  } = {},
) {
  const db = await openDatabase(await aMigratedDatabaseUrl(t))
  const clock = testClock()
  const simulator = await createSimulator({ db, clock })
  const logged: ({ event: string } & Record<string, unknown>)[] = []
  const keep: Log['info'] = (facts) => void logged.push(facts as (typeof logged)[number])
  const outbound: OutboundRules = { allowed: new Set() }
  const common = {
    simulator,
    outbound,
    network: 'regtest' as const,
    clock,
    quoteSeconds: 900,
  }
  const limits = createLimits(
    {
      limits: [...Object.values(LIMITS), ...GATE.limits].map((limit) => ({
        limit,
        rate: rates[limit.name] ?? null,
      })),
      openOrders: null,
    },
    () => '203.0.113.7',
  )

  /** GATE on this store, as after a start with these secrets under this name. */
  async function open({ secrets = [1], host = 'gate.mayfly.org' } = {}) {
    const publicUrl = () => `https://${host}`
    const app = await createApp({
      log: pino({ level: 'silent' }),
      clock: { ...clock, hasParted: () => false, beat: async () => undefined },
      surfaces: [GATE.surface],
    })
    const [current, ...older] = secrets.map((byte) => new Uint8Array(32).fill(byte))
    const parts = {
      ...common,
      app,
      db,
      limits,
      publicUrl,
      simulator: isSimulated ? simulator : null,
      secrets: createSecrets([current ?? new Uint8Array(), ...older]),
      log: { info: keep, warn: keep, error: keep },
    }
    const gate = await openGate(parts as unknown as ProductParts & { outbound: OutboundRules })
    await app.listen({ host: '127.0.0.1', port: 0 })
    t.after(() => app.close())
    const { port } = app.server.address() as AddressInfo
    return { gate, url: `http://127.0.0.1:${port}` }
  }

  let opened = await open()
  t.after(() => db.close())
  const projects = createProjects({
    db,
    clock,
    allowed: outbound.allowed,
    provider: openProvider(common),
  })
  const add = () =>
    projects.add({
      address: 'alice@example.com',
      routes: ROUTES.map(parseRouteSpec),
      credits: 10,
    })
  const { projectId, capability } = await add()
  const stranger = await add()
  const own = { authorization: `Bearer ${capability}`, 'x-gate-project': projectId }
  const json = { 'content-type': 'application/json' }

  const create = (ask: Fields = {}, body: string | Buffer = BODY) =>
    send(`${opened.url}/api/gate/intents`, {
      headers: {
        ...own,
        ...json,
        'idempotency-key': randomUUID(),
        'x-gate-route': 'render',
        'x-gate-method': 'POST',
        'x-gate-path': PATH,
        ...ask,
      },
      body,
    })
  const proveRaw = (intentId: string, body: string, ask: Fields = {}) =>
    send(`${opened.url}/api/gate/intents/${intentId}/prove`, {
      headers: { ...own, ...json, ...ask },
      body,
    })
  const giveBackRaw = (intentId: string, body: string, ask: Fields = {}) =>
    send(`${opened.url}/api/gate/intents/${intentId}/give-back`, {
      headers: { authorization: own.authorization, ...json, ...ask },
      body,
    })
  const quoted = async (ask: Fields = {}) => (await create(ask)).body as GateQuote
  async function pay({ bolt11 }: { bolt11: string }): Promise<string> {
    const paid = await simulator.pay(bolt11)
    if (paid.kind !== 'paid') throw new Error(`the simulator did not pay: ${paid.kind}`)
    return paid.preimage
  }

  return {
    db,
    clock,
    logged,
    simulator,
    projects,
    projectId,
    own,
    stranger,
    create,
    proveRaw,
    giveBackRaw,
    quoted,
    pay,
    foreign: () => opened.gate.foreign?.(),
    url: opened.url,
    get: (path: string) => send(opened.url + path, {}),
    poll: (intentId: string, ask: Fields = {}) =>
      send(`${opened.url}/api/gate/intents/${intentId}`, {
        headers: { authorization: own.authorization, ...ask },
      }),
    prove: (intentId: string, preimage: string, ask: Fields = {}) =>
      proveRaw(intentId, JSON.stringify({ preimage }), ask),
    giveBack: (intentId: string, receiptId: string, ask: Fields = {}) =>
      giveBackRaw(intentId, JSON.stringify({ receiptId }), ask),
    /** A paid challenge, and what a payer sends along with its credential. */
    async credential(ask: Fields = {}) {
      const { headers, body } = await create({ ...ask, 'x-payment-protocol': 'payment' })
      const quote = body as GateQuote
      const challenge = challengeOf(headers['www-authenticate'])
      const preimage = await pay(quote)
      const authorization = paymentAuthorization({ challenge, payload: { preimage } })
      const bound = { 'x-gate-method': quote.method, 'x-gate-path': quote.path }
      return { quote, challenge, preimage, sent: { authorization, ...bound } }
    },
    async restart(changes: Parameters<typeof open>[0]) {
      opened = await open(changes)
    },
  }
}

/** A POST if there is a body, otherwise a GET. */
async function send(
  url: string,
  { headers = {}, body }: { headers?: Fields; body?: string | Buffer },
) {
  const method = body === undefined ? 'GET' : 'POST'
  const { body: bytes, ...answer } = await sendHttp(url, { method, headers, body })
  return { ...answer, body: (bytes.length === 0 ? null : JSON.parse(bytes.toString())) as unknown }
}
