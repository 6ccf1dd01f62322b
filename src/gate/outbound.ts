/**
 * Calls to servers that a stranger chose: https to public addresses, no redirects, no cookies, and
 * limits on size and time. The caller must check the answer.
 */
import { Agent, type Dispatcher } from 'undici'
import { unlessAborted } from '../lib/abort.ts'
import type { Clock } from '../lib/clock.ts'
import { codeOf } from '../lib/errors.ts'
import { parseJsonBytes } from '../lib/json.ts'
import { type AllowedHosts, hostAndPort, LnurlError } from '../protocol/lnurl.ts'
import { guardedLookup, type Resolve, systemResolve } from './guarded-lookup.ts'
import { createHostSlots } from './host-slots.ts'

/** LNURL metadata (LUD-06) may contain a picture. Up to 136 536 characters are common. */
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
   * Sends a GET to a URL that `checkedUrl` accepted. `json` is undefined for an answer that is not
   * JSON.
   * @throws LnurlError if the server does not answer.
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
  // Without the guard, only for servers that the operator configured.
  const plain = new Agent({ ...agentOptions, connect })
  const slots = createHostSlots(clock, isOutage)

  async function exchange(url: URL, signal: AbortSignal) {
    const host = hostAndPort(url)
    const agent = allowed.has(host) ? plain : guarded
    return slots.use(host, signal, async () => {
      // undici observes the signal only after it has connected, which may take long.
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
    // Leaving the loop destroys the body and closes the connection.
    if (bytes > MAX_ANSWER_BYTES) throw new LnurlError('the answer of the provider is too large')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

function isOutage(error: unknown): boolean {
  return !(error instanceof LnurlError) && codeOf(error) !== 'UND_ERR_RES_EXCEEDED_MAX_SIZE'
}

/** One sentence for the log and the operator. It quotes nothing that the server sent. */
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
