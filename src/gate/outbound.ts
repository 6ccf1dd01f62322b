/**
 * Calls to servers that a stranger chose: https to public addresses, no redirects, no cookies, and
 * limits on size and time. The caller judges the answer.
 */
import { Agent, type Dispatcher } from 'undici'
import { unlessAborted } from '../lib/abort.ts'
import type { Clock } from '../lib/clock.ts'
import { codeOf } from '../lib/errors.ts'
import { parseJsonBytes } from '../lib/json.ts'
import { type AllowedHosts, hostAndPort, LnurlError } from '../protocol/lnurl.ts'
import { guardedLookup, type Resolve, systemResolve } from './guarded-lookup.ts'
import { createHostSlots } from './host-slots.ts'

/** Metadata may hold a picture, of which 136 536 characters are common. */
const MAX_ANSWER_BYTES = 256 * 1024
const CONNECTIONS = 4

export type OutboundTimeouts = { connectMs: number; silenceMs: number; overallMs: number }

const TIMEOUTS: OutboundTimeouts = { connectMs: 5_000, silenceMs: 5_000, overallMs: 10_000 }

export type OutboundOptions = {
  clock: Clock
  allowed: AllowedHosts
  resolve?: Resolve
  timeouts?: OutboundTimeouts
}

export type Outbound = {
  /**
   * The answer to a GET of a URL that `checkedUrl` has passed; `json` is undefined for an answer that
   * is not JSON.
   * @throws LnurlError where there is no answer to be had.
   */
  get(url: URL): Promise<{ status: number; json: unknown }>
  close(): Promise<void>
}

export function createOutbound({
  clock,
  allowed,
  resolve = systemResolve,
  timeouts = TIMEOUTS,
}: OutboundOptions): Outbound {
  const agentOptions: Agent.Options = {
    connections: CONNECTIONS,
    allowH2: false,
    pipelining: 1,
    headersTimeout: timeouts.silenceMs,
    bodyTimeout: timeouts.silenceMs,
    maxResponseSize: MAX_ANSWER_BYTES,
  }
  const connect = { timeout: timeouts.connectMs }
  const guarded = new Agent({
    ...agentOptions,
    connect: { ...connect, lookup: guardedLookup(resolve) },
  })
  // Only for the servers that the operator has named.
  const plain = new Agent({ ...agentOptions, connect })
  const slots = createHostSlots(clock, isOutage)

  async function exchange(url: URL, signal: AbortSignal) {
    const host = hostAndPort(url)
    const agent = allowed.has(host) ? plain : guarded
    return slots.use(host, signal, async () => {
      // undici watches the signal only once the request has a connection, however long that takes.
      const response = await unlessAborted(
        signal,
        agent.request({
          origin: url.origin,
          path: url.pathname + url.search,
          method: 'GET',
          headers: {
            accept: 'application/json',
            'accept-encoding': 'identity',
            'user-agent': 'lnurl-pay',
          },
          signal,
        }),
      )
      return { status: response.statusCode, json: parseJsonBytes(await bounded(response)) }
    })
  }

  return {
    async get(url) {
      try {
        return await exchange(url, AbortSignal.timeout(timeouts.overallMs))
      } catch (error) {
        throw asLnurlError(error)
      }
    },
    async close() {
      await Promise.all([guarded.destroy(), plain.destroy()])
    },
  }
}

async function bounded({ body }: Dispatcher.ResponseData): Promise<Uint8Array> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of body as AsyncIterable<Buffer>) {
    bytes += chunk.length
    // Leaving the loop destroys the body, and its connection with it.
    if (bytes > MAX_ANSWER_BYTES) throw new LnurlError('the answer of the provider is too large')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

function isOutage(error: unknown): boolean {
  return !(error instanceof LnurlError) && codeOf(error) !== 'UND_ERR_RES_EXCEEDED_MAX_SIZE'
}

/** One sentence for the log and the operator; nothing of what the server sent. */
function asLnurlError(error: unknown): LnurlError {
  if (error instanceof LnurlError) return error
  const code = codeOf(error)
  if (code === 'UND_ERR_RES_EXCEEDED_MAX_SIZE') {
    return new LnurlError('the answer of the provider is too large', { cause: error })
  }
  if (/TIMEOUT/.test(code) || (error instanceof Error && error.name === 'TimeoutError')) {
    return new LnurlError('the provider takes too long', { cause: error })
  }
  return new LnurlError(`the provider cannot be reached${code === '' ? '' : ` (${code})`}`, {
    cause: error,
  })
}
