/** GATE in a running server, with a project that sells `POST /render/*`. */
import { randomUUID } from 'node:crypto'
import type { TestContext } from 'node:test'
import type { GateQuote } from '../../src/client/index.ts'
import { phraseIn } from './answer.ts'
import { register } from './gate.ts'
import { BODY, PATH } from './gate-request.ts'
import { startServer } from './server.ts'

/** Headers, and `key` and `body`. Null leaves a member out. */
export type Ask = Record<string, string | null>

/** An answer with its body parsed as JSON. */
export type Answer = { status: number; headers: Headers; body: unknown }

/** A server with one project, and calls with its capability. */
export async function aShop(
  t: TestContext,
  {
    credits = 10,
    environment = {},
  }: { credits?: number; environment?: Record<string, string> } = {},
) {
  // Every start reads the same object, so that a test can change it before a restart.
  environment.MAYFLY_GATE = 'on'
  const server = await startServer(t, environment)
  const { projectId, capability } = await register(server, { credits })
  const own = { authorization: `Bearer ${capability}`, 'x-gate-project': projectId }

  /** Sends a POST if there is a body, otherwise a GET. */
  async function send(path: string, ask: Ask, body?: string): Promise<Answer> {
    const headers = Object.entries(ask).filter((entry): entry is [string, string] => !!entry[1])
    const response = await fetch(server.url + path, {
      headers,
      ...(body === undefined ? {} : { method: 'POST', body: bytes(body) }),
    })
    const text = await response.text()
    const { status } = response
    return {
      status,
      headers: response.headers,
      body: text === '' ? null : JSON.parse(phraseIn(status, text)),
    }
  }

  const create = ({ key = randomUUID(), body = BODY, ...headers }: Ask) =>
    send(
      '/api/gate/intents',
      {
        ...own,
        'idempotency-key': key,
        'x-gate-route': 'render',
        'x-gate-method': 'POST',
        'x-gate-path': PATH,
        'content-type': 'application/json',
        ...headers,
      },
      body ?? '',
    )
  const proveRaw = (intentId: string, body: string, headers: Ask = {}) =>
    send(
      `/api/gate/intents/${intentId}/prove`,
      { ...own, 'content-type': 'application/json', ...headers },
      body,
    )
  const prove = ({ intentId }: GateQuote, { preimage, ...headers }: Ask) =>
    proveRaw(intentId, JSON.stringify({ preimage }), headers)

  return {
    ...server,
    projectId,
    capability,
    gate: server.mayfly.gate({ projectId, capability }),
    create,
    prove,
    proveRaw,
    giveBack: (intentId: string, receiptId: string) =>
      send(
        `/api/gate/intents/${intentId}/give-back`,
        { authorization: own.authorization, 'content-type': 'application/json' },
        JSON.stringify({ receiptId }),
      ),
    poll: (intentId: string, headers: Ask = {}) =>
      send(`/api/gate/intents/${intentId}`, {
        authorization: own.authorization,
        ...headers,
      }),
    async restart() {
      await server.restart()
      return server
    },
  }
}

/** A body that fetch sends without a Content-Type. */
export function bytes(text: string): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(text)
}
