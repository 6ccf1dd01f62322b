/** Requests to a server with limits, and checks of the limits in its answers. */
import assert from 'node:assert/strict'
import type { CatchCapability } from '../../src/client/index.ts'
import { type Answer as BuyerAnswer, openOrder, purchase } from './buying.ts'
import { type After, jsonFile } from './folder.ts'
import { startServer, type TestServer } from './server.ts'

export const LIMITED = { status: 429, text: '{"error":"rate limited"}' }

/** The parts of an answer that say how much of a limit is left. */
export type Answer = Pick<BuyerAnswer, 'status' | 'text' | 'header'>

export const short = ({ status, text }: Answer): { status: number; text: string } => ({
  status,
  text,
})

export function limitHeaders({
  header,
}: Answer): Record<'policy' | 'left' | 'retryAfter', string | null> {
  return {
    policy: header('ratelimit-policy'),
    left: header('ratelimit'),
    retryAfter: header('retry-after'),
  }
}

/** Asserts that this many requests pass and say how much is left, and that the next one is refused. */
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
  request: RequestInit = {},
): Promise<Answer> {
  const answer = await fetch(url + path, request)
  const header = (name: string): string | null => answer.headers.get(name)
  if (header('content-type')?.startsWith('text/event-stream')) {
    await answer.body?.cancel()
    return { status: answer.status, text: '', header }
  }
  return { status: answer.status, text: await answer.text(), header }
}

/** Buys an inbox with two requests and without a poll. */
export async function anInbox(
  server: TestServer,
  planId: 'spark' | 'standard' | 'long' = 'spark',
): Promise<CatchCapability> {
  const body = JSON.stringify({ planId })
  const { key, bolt11 } = await openOrder(server, { body })
  await server.pay(bolt11)
  const { text } = await purchase(server, { key, body })
  return JSON.parse(text).resource
}

export async function limited(
  t: After,
  rates: object,
  environment: Record<string, string> = {},
): Promise<TestServer> {
  return startServer(t, { MAYFLY_RATE_LIMITS: await jsonFile(t, rates), ...environment })
}
