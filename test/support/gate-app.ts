/** A server with GATE, two projects on it, and what the server of the first one sends. */
import { randomUUID } from 'node:crypto'
import type { GateQuote } from '../../src/client/index.ts'
import type { Rate } from '../../src/http/limits.ts'
import { type After, jsonFile } from './folder.ts'
import { register } from './gate.ts'
import { type Fields, send as sendHttp } from './http.ts'
import { paymentAuthorization, paymentChallengeIn } from './payer.ts'
import { startServer } from './server.ts'

/** A request to a project that sells `POST /render/*`. */
export const BODY = '{"size": 2}'
export const PATH = '/render/cat?size=2'

/** Another secret, with that of a new shop as the older one. */
export const ROTATED = `${'02'.repeat(32)},${'01'.repeat(32)}`

export type Shop = Awaited<ReturnType<typeof aShop>>

/** Without rates, nothing is limited. */
export async function aShop(t: After, rates?: Record<string, Rate>) {
  const environment: Record<string, string> = {
    MAYFLY_GATE: 'on',
    MAYFLY_BASE_URL: 'https://gate.mayfly.org',
    MAYFLY_SECRET: '01'.repeat(32),
    MAYFLY_RATE_LIMITS: rates ? await jsonFile(t, rates) : 'off',
  }
  const server = await startServer(t, environment)
  const { projectId, capability, projects } = await register(server)
  const stranger = await register(server)
  const own = { authorization: `Bearer ${capability}`, 'x-gate-project': projectId }
  const json = { 'content-type': 'application/json' }
  const at = (path: string) => `${server.url}/api/gate/intents${path}`

  const create = (ask: Fields = {}, body: string | Buffer = BODY) =>
    send(at(''), {
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
    send(at(`/${intentId}/prove`), { headers: { ...own, ...json, ...ask }, body })
  const { authorization } = own
  const giveBackRaw = (intentId: string, body: string, ask: Fields = {}) =>
    send(at(`/${intentId}/give-back`), { headers: { authorization, ...json, ...ask }, body })
  const quoted = async (ask: Fields = {}) => (await create(ask)).body as GateQuote
  const pay = ({ bolt11 }: { bolt11: string }) => server.pay(bolt11)

  return {
    server,
    clock: server.clock,
    projects,
    projectId,
    capability,
    own,
    stranger,
    create,
    proveRaw,
    giveBackRaw,
    quoted,
    pay,
    get: (path: string) => send(server.url + path, {}),
    poll: (intentId: string, ask: Fields = {}) =>
      send(at(`/${intentId}`), { headers: { authorization, ...ask } }),
    prove: (intentId: string, preimage: string, ask: Fields = {}) =>
      proveRaw(intentId, JSON.stringify({ preimage }), ask),
    giveBack: (intentId: string, receiptId: string, ask: Fields = {}) =>
      giveBackRaw(intentId, JSON.stringify({ receiptId }), ask),
    /** A paid challenge, and what a payer sends along with its credential. */
    async credential(ask: Fields = {}) {
      const { headers, body } = await create({ ...ask, 'x-payment-protocol': 'payment' })
      const quote = body as GateQuote
      const challenge = paymentChallengeIn(headers['www-authenticate'])
      const preimage = await pay(quote)
      const authorization = paymentAuthorization({ challenge, payload: { preimage } })
      const bound = { 'x-gate-method': quote.method, 'x-gate-path': quote.path }
      return { quote, challenge, preimage, sent: { authorization, ...bound } }
    },
    /** The same service after a start with other settings. */
    restart(changes: Record<string, string>) {
      Object.assign(environment, changes)
      return server.restart()
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
