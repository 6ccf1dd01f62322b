/**
 * The one way out to servers that a stranger chose: https to public addresses, no redirects, no cookies, and
 * limits on size and time. The caller must check the answer.
 */
import { Agent, type Dispatcher } from 'undici'
import { unlessAborted } from '../lib/abort.ts'
import type { SteadyClock } from '../lib/clock.ts'
import { codeOf } from '../lib/errors.ts'
import { hostAndPort } from '../protocol/public-url.ts'
import { OutboundError } from './error.ts'
import { guardedLookup, type Resolve, systemResolve } from './guarded-lookup.ts'
import { createHostSlots, type HostLimits } from './host-slots.ts'
import { proxyConnector } from './proxy.ts'
import { type OutboundRules, requireCallable } from './rules.ts'

export type OutboundTimeouts = { connectMs: number; silenceMs: number; overallMs: number }

const TIMEOUTS: OutboundTimeouts = { connectMs: 5_000, silenceMs: 5_000, overallMs: 10_000 }

export type OutboundOptions = OutboundRules & {
  clock: SteadyClock
  hosts: HostLimits
  /** A larger answer is not read. */
  maxAnswerBytes: number
  resolve?: Resolve
  timeouts?: OutboundTimeouts
}

export type OutboundRequest = {
  url: URL
  method: 'GET' | 'POST'
  headers: Record<string, string>
  body?: string
  /** Names who causes the call, for the turns at a busy host. Default: all callers are one. */
  from?: string
}

export type OutboundAnswer = {
  status: number
  headers: Record<string, string | string[] | undefined>
  body: Uint8Array
}

export type Outbound = {
  /** @throws OutboundError if the server may not be called, or gives no usable answer. */
  send(request: OutboundRequest): Promise<OutboundAnswer>
  close(): Promise<void>
}

export function createOutbound(options: OutboundOptions): Outbound {
  const { clock, allowed, resolve = systemResolve, timeouts = TIMEOUTS, proxy = null } = options
  const { maxAnswerBytes } = options
  const agentOptions: Agent.Options = {
    connections: options.hosts.concurrent,
    allowH2: false,
    pipelining: 1,
    headersTimeout: timeouts.silenceMs,
    bodyTimeout: timeouts.silenceMs,
    maxResponseSize: maxAnswerBytes,
  }
  const connect = { timeout: timeouts.connectMs }
  const guarded = new Agent({
    ...agentOptions,
    connect: proxy
      ? proxyConnector(proxy, { resolve, timeoutMs: timeouts.connectMs })
      : { ...connect, lookup: guardedLookup(resolve) },
  })
  // Without the guard, only for servers that the operator configured.
  const plain = new Agent({ ...agentOptions, connect })
  const slots = createHostSlots({ clock, limits: options.hosts, isOutage })

  async function exchange(request: OutboundRequest, signal: AbortSignal): Promise<OutboundAnswer> {
    const { url, method, headers, body = null, from = '' } = request
    const host = hostAndPort(url)
    const agent = allowed.has(host) ? plain : guarded
    return slots.use({ host, from, signal }, async () => {
      // undici observes the signal only after it has connected, which may take long.
      const response = await unlessAborted(
        signal,
        agent.request({
          ...{ origin: url.origin, path: url.pathname + url.search },
          ...{ method, body, signal, headers: { 'accept-encoding': 'identity', ...headers } },
        }),
      )
      const { statusCode: status } = response
      try {
        return { status, headers: response.headers, body: await bounded(response, maxAnswerBytes) }
      } catch (error) {
        throw asOutboundError(error, status)
      }
    })
  }

  return {
    async send(request) {
      requireCallable(request.url, options)
      try {
        return await exchange(request, AbortSignal.timeout(timeouts.overallMs))
      } catch (error) {
        throw asOutboundError(error)
      }
    },
    async close() {
      await Promise.all([guarded.destroy(), plain.destroy()])
    },
  }
}

async function bounded({ body }: Dispatcher.ResponseData, most: number): Promise<Uint8Array> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of body as AsyncIterable<Buffer>) {
    bytes += chunk.length
    // Leaving the loop destroys the body and closes the connection.
    if (bytes > most) throw new OutboundError('too large')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

function isOutage(error: unknown): boolean {
  const { reason } = asOutboundError(error)
  return reason === 'unreachable' || reason === 'too slow'
}

/** @param status of the answer, if its body failed. */
function asOutboundError(error: unknown, status: number | null = null): OutboundError {
  if (error instanceof OutboundError) {
    const { reason, code, cause } = error
    return status === null ? error : new OutboundError(reason, { code, cause, status })
  }
  const code = codeOf(error)
  const because = { status, cause: error }
  if (code === 'UND_ERR_RES_EXCEEDED_MAX_SIZE') return new OutboundError('too large', because)
  if (/TIMEOUT/.test(code) || (error instanceof Error && error.name === 'TimeoutError')) {
    return new OutboundError('too slow', because)
  }
  return new OutboundError('unreachable', { ...because, code })
}
