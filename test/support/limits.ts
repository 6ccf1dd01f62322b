/** Requests to a server with limits, and what its answers say of them. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { CatchCapability, PaymentQuote } from '../../src/client/index.ts'
import { type After, temporaryFolder } from './folder.ts'
import { startServer, type TestServer } from './server.ts'

export const LIMITED = { status: 429, text: '{"error":"rate limited"}' }

export type Answer = { status: number; text: string; headers: Headers }

export const short = ({ status, text }: Answer): { status: number; text: string } => ({
  status,
  text,
})

export function limitHeaders({
  headers,
}: Answer): Record<'policy' | 'left' | 'retryAfter', string | null> {
  return {
    policy: headers.get('ratelimit-policy'),
    left: headers.get('ratelimit'),
    retryAfter: headers.get('retry-after'),
  }
}

/** So many requests pass, each saying what is left, and the one after them is refused. */
export async function tripsAt(
  count: number,
  { name, window }: { name: string; window: number },
  send: () => Promise<Answer>,
): Promise<void> {
  for (let left = count - 1; left >= 0; left--) {
    const answer = await send()
    assert.notEqual(answer.status, 429, `with ${left + 1} left`)
    const said = limitHeaders(answer)
    assert.equal(said.policy, `"${name}";q=${count};w=${window}`)
    assert.match(said.left ?? '', new RegExp(`^"${name}";r=${left};t=\\d+$`))
  }
  const refused = await send()
  assert.deepEqual(short(refused), LIMITED)
  const said = limitHeaders(refused)
  assert.equal(said.policy, `"${name}";q=${count};w=${window}`)
  assert.match(said.retryAfter ?? '', /^[1-9]\d*$/)
  assert.equal(said.left, `"${name}";r=0;t=${said.retryAfter}`)
  assert.ok(Number(said.retryAfter) <= window)
}

export async function ask(
  { url }: TestServer,
  path: string,
  headers: Record<string, string> = {},
  method = 'GET',
): Promise<Answer> {
  const answer = await fetch(url + path, { method, headers })
  if (answer.headers.get('content-type')?.startsWith('text/event-stream')) {
    await answer.body?.cancel()
    return { status: answer.status, text: '', headers: answer.headers }
  }
  return { status: answer.status, text: await answer.text(), headers: answer.headers }
}

export async function buy(
  { url }: TestServer,
  key: string,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const answer = await fetch(`${url}/api/payments/catch`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'idempotency-key': key, ...headers },
    body: '{"planId":"spark"}',
  })
  return { status: answer.status, text: await answer.text(), headers: answer.headers }
}

export async function quoteOf(
  server: TestServer,
  key: string = randomUUID(),
): Promise<PaymentQuote> {
  const { status, text } = await buy(server, key)
  assert.equal(status, 402)
  return JSON.parse(text) as PaymentQuote
}

/** Bought in two requests and no poll. */
export async function anInbox(
  server: TestServer,
  planId: 'spark' | 'standard' | 'long' = 'spark',
): Promise<CatchCapability> {
  const purchase = {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'idempotency-key': randomUUID() },
    body: JSON.stringify({ planId }),
  }
  const quoted = await fetch(`${server.url}/api/payments/catch`, purchase)
  await server.pay(((await quoted.json()) as PaymentQuote).bolt11)
  const bought = await fetch(`${server.url}/api/payments/catch`, purchase)
  return ((await bought.json()) as { resource: CatchCapability }).resource
}

export async function ratesFile(t: After, rates: object): Promise<string> {
  const file = join(await temporaryFolder(t), 'rates.json')
  await writeFile(file, JSON.stringify(rates))
  return file
}

export async function limited(
  t: After,
  rates: object,
  environment: Record<string, string> = {},
): Promise<TestServer> {
  return startServer(t, { MAYFLY_RATE_LIMITS: await ratesFile(t, rates), ...environment })
}
