/** A server with limits, requests to it, and what its answers say of the limits. */
import type { Answer as BuyerAnswer } from './buying.ts'
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

export async function limited(
  t: After,
  rates: object,
  environment: Record<string, string> = {},
): Promise<TestServer> {
  return startServer(t, { MAYFLY_RATE_LIMITS: await jsonFile(t, rates), ...environment })
}
