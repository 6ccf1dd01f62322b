/** Monitors of a running server: bought, pinged, read and changed over plain HTTP. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { PulseCapability } from '../../src/client/index.ts'
import { type Answer, answerOf } from './answer.ts'
import { type After, temporaryFolder } from './folder.ts'
import { startServer, type TestServer } from './server.ts'
import { holds } from './store.ts'

export const DONE = { status: 204, text: '' }
export const INVALID_SETTINGS = { status: 400, text: '{"error":"invalid settings"}' }
export const INVALID_BODY = { status: 400, text: '{"error":"invalid request body"}' }

/** What the owner of a monitor holds. */
export type Owner = Pick<PulseCapability, 'publicId' | 'ownerToken'>

/** What a job that pings holds. */
export type Job = Pick<PulseCapability, 'publicId' | 'pingToken'>

/** Bought the quickest way; no token of it is used yet. */
export function aMonitor(
  { mayfly, pay }: TestServer,
  planId: 'spark' | 'standard' | 'long' = 'spark',
  idempotencyKey: string = randomUUID(),
): Promise<PulseCapability> {
  return mayfly.buyPulse({ planId, idempotencyKey, onInvoice: ({ bolt11 }) => pay(bolt11) })
}

/** A server whose plans of PULSE are changed. */
export async function aServerWith(
  t: After,
  pulse: Record<string, Record<string, unknown>>,
): Promise<TestServer> {
  const file = join(await temporaryFolder(t), 'catalog.json')
  await writeFile(file, JSON.stringify({ pulse }))
  return startServer(t, { MAYFLY_CATALOG: file })
}

/** A purchase whose body is sent as it is. */
export async function purchasePulse(
  { url }: TestServer,
  body: string,
  key: string = randomUUID(),
): Promise<Answer> {
  return answerOf(
    await fetch(`${url}/api/payments/pulse`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'idempotency-key': key },
      body,
    }),
  )
}

/** A ping, with its own token but for what the request says. */
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

/** A call of the owner. */
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

/** A change of the settings, whose body is sent as it is. */
export function patch(server: TestServer, capability: Owner, body: string): Promise<Answer> {
  return owner(server, capability, { method: 'PATCH', body })
}

/** What is below the address that is shared. */
export async function shared({ url }: TestServer, rest: string): Promise<Answer> {
  return answerOf(await fetch(`${url}/api/pulse/public/${rest}`))
}

/** Nowhere in the store, and in no line of the log. */
export async function assertNowhere(server: TestServer, texts: string[]): Promise<void> {
  for (const text of texts) assert.ok(!(await holds(server, text)), `the store holds ${text}`)
  for (const text of texts) assert.ok(!server.logged.some((line) => line.includes(text)), text)
}
