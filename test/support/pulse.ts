/** Monitors of a running server: bought, pinged, read and changed over plain HTTP. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import type { PulseCapability } from '../../src/client/index.ts'
import { type Answer, answerOf } from './answer.ts'
import { type After, jsonFile } from './folder.ts'
import { startServer, type TestServer } from './server.ts'
import { holds, query } from './store.ts'

export const DONE = { status: 204, text: '' }
export const INVALID_SETTINGS = { status: 400, text: '{"error":"invalid settings"}' }
export const INVALID_BODY = { status: 400, text: '{"error":"invalid request body"}' }

/** The owner's part of a capability. */
export type Owner = Pick<PulseCapability, 'publicId' | 'ownerToken'>

/** The part of a capability that a pinging job has. */
export type Job = Pick<PulseCapability, 'publicId' | 'pingToken'>

/** Buys a monitor. Its tokens are unused. */
export function aMonitor(
  { mayfly, pay }: TestServer,
  planId: 'spark' | 'standard' | 'long' = 'spark',
  idempotencyKey: string = randomUUID(),
): Promise<PulseCapability> {
  return mayfly.buyPulse({ planId, idempotencyKey, onInvoice: ({ bolt11 }) => pay(bolt11) })
}

/** Starts a server with changed plans of PULSE. */
export async function aServerWith(
  t: After,
  pulse: Record<string, Record<string, unknown>>,
): Promise<TestServer> {
  return startServer(t, { MAYFLY_CATALOG: await jsonFile(t, { pulse }) })
}

/** Sends a purchase with exactly this body. */
export async function purchasePulse(
  { url }: TestServer,
  body: string,
  { key = randomUUID(), headers = {} }: { key?: string; headers?: Record<string, string> } = {},
): Promise<Answer> {
  return answerOf(
    await fetch(`${url}/api/payments/pulse`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'idempotency-key': key, ...headers },
      body,
    }),
  )
}

/** Sends a ping. Default: with the job's token. */
export async function ping(
  { url }: TestServer,
  { publicId, pingToken }: Job,
  request: { token?: string; body?: string; headers?: Record<string, string> } = {},
): Promise<Answer> {
  return answerOf(
    await fetch(`${url}/p/${publicId}`, {
      method: 'POST',
      headers: { ...request.headers, authorization: `Bearer ${request.token ?? pingToken}` },
      ...(request.body === undefined ? {} : { body: request.body }),
    }),
  )
}

type OwnerRequest = { method: string; body?: string | undefined; type?: string | null }

/** Sends a request of the owner. */
export async function owner(
  { url }: TestServer,
  { publicId, ownerToken }: Owner,
  { method, body, type = 'application/json' }: OwnerRequest,
): Promise<Answer> {
  return answerOf(
    await fetch(`${url}/api/pulse/${publicId}`, {
      method,
      headers: {
        authorization: `Bearer ${ownerToken}`,
        ...(body === undefined || type === null ? {} : { 'content-type': type }),
      },
      ...(body === undefined ? {} : { body: new TextEncoder().encode(body) }),
    }),
  )
}

/** Sends a change of the settings with exactly this body. */
export function patch(server: TestServer, capability: Owner, body: string): Promise<Answer> {
  return owner(server, capability, { method: 'PATCH', body })
}

/** Requests a path below the address of shared statuses. */
export async function shared({ url }: TestServer, rest: string): Promise<Answer> {
  return answerOf(await fetch(`${url}/api/pulse/public/${rest}`))
}

/** Asserts that these texts are neither in the store nor in the log. */
export async function assertNowhere(server: TestServer, texts: string[]): Promise<void> {
  for (const text of texts) assert.ok(!(await holds(server, text)), `the store holds ${text}`)
  for (const text of texts) assert.ok(!server.logged.some((line) => line.includes(text)), text)
}

/** Lets this much time pass while the service lives: its beats go along. With `clock.advance` alone it stood still. */
export async function live(
  server: Pick<TestServer, 'clock' | 'now' | 'databaseUrl' | 'beat'>,
  ms: number,
): Promise<void> {
  await server.beat()
  const then = server.now() + ms
  await query(server, 'update clock set beat_at = $1', then)
  await query(server, 'update clock_beat set beat_at = $1', then)
  server.clock.advance(ms)
  await server.beat()
}
