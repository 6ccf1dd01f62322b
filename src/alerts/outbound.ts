/**
 * The one way out to servers that a stranger chose: https to public addresses, no redirects, no cookies, and
 * limits on size and time. The caller must check the answer.
 */
import type { LookupAddress } from 'node:dns'
import { EventEmitter } from 'node:events'
import { LRUCache } from 'lru-cache'
import { Agent } from 'undici'
import { unlessAborted } from '../lib/abort.ts'
import { codeOf } from '../lib/errors.ts'
import { hostAndPort } from '../protocol/public-url.ts'
import {
  askNameServers,
  type Checked,
  checkedLookup,
  proxyConnector,
  publicAddresses,
  type Resolve,
} from './connecting.ts'
import { OutboundError, type OutboundRules, requireCallable } from './outbound-rules.ts'
import { createSlots, type SlotLimits, type Slots } from './slots.ts'

/** How long a call waits for its turn, how long its name is looked up, and the times of the call itself. */
const TIMEOUTS = {
  waitMs: 12_000,
  /** Longer than any name server takes that means to answer. */
  lookupMs: 2_000,
  connectMs: 5_000,
  silenceMs: 5_000,
  overallMs: 10_000,
}
export type OutboundTimeouts = Partial<typeof TIMEOUTS>

/** Names that are resolved at once. Whoever names servers that are silent waits behind their own look-ups. */
const LOOKUPS = { concurrent: 16, ofOne: 2, waiting: 256 }
/** Hosts whose slots are kept. */
const MAX_HOSTS = 10_000
/** Names whose checked addresses are kept for the connections that were asked for. More than calls at once. */
const MAX_CHECKED = 1_000

export type OutboundOptions = OutboundRules & {
  /** The slots at one host. */
  host: SlotLimits
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
  /** Names who causes the call, for the slots of a busy host. Default: all callers are one. */
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
  const { allowed, resolve = askNameServers, proxy = null, maxAnswerBytes } = options
  const timeouts = { ...TIMEOUTS, ...options.timeouts }
  const { connectMs, silenceMs } = timeouts
  const addresses = new LRUCache<string, LookupAddress[]>({ max: MAX_CHECKED })
  const checked: Checked = (name) => {
    const known = addresses.get(name)
    if (!known) throw new OutboundError('nowhere')
    return known
  }
  const agentOptions: Agent.Options = {
    connections: options.host.concurrent,
    allowH2: false,
    pipelining: 1,
    headersTimeout: silenceMs,
    bodyTimeout: silenceMs,
    maxResponseSize: maxAnswerBytes,
  }
  const guarded = new Agent({
    ...agentOptions,
    connect: proxy
      ? proxyConnector(proxy, { checked, timeoutMs: connectMs })
      : { timeout: connectMs, lookup: checkedLookup(checked) },
  })
  // Without the guard and with the system's names, only for servers that the operator configured.
  const plain = new Agent({ ...agentOptions, connect: { timeout: connectMs } })
  // Grows as it fills; with `max` it would take all of its memory at once.
  const hosts = new LRUCache<string, Slots>({
    maxSize: MAX_HOSTS,
    sizeCalculation: () => 1,
    memoMethod: () => createSlots(options.host),
  })
  const lookups = createSlots(LOOKUPS)
  const closing = new AbortController()
  EventEmitter.setMaxListeners(0, closing.signal)
  const within = (ms: number): AbortSignal =>
    AbortSignal.any([AbortSignal.timeout(ms), closing.signal])

  function lookUp(name: string): Promise<LookupAddress[]> {
    const signal = within(timeouts.lookupMs)
    return unlessAborted(
      signal,
      publicAddresses(name, (some) => resolve(some, signal)),
    )
  }

  async function exchange(agent: Agent, request: OutboundRequest): Promise<OutboundAnswer> {
    const { url, method, headers, body = null } = request
    const signal = within(timeouts.overallMs)
    // undici observes the signal only after it has connected, which may take long.
    const response = await unlessAborted(
      signal,
      agent.request({
        origin: url.origin,
        path: url.pathname + url.search,
        method,
        body,
        signal,
        headers: { 'accept-encoding': 'identity', ...headers },
      }),
    )
    const { statusCode: status } = response
    try {
      return { status, headers: response.headers, body: await response.body.bytes() }
    } catch (error) {
      throw asOutboundError(error, status)
    }
  }

  return {
    async send(request) {
      requireCallable(request.url, options)
      const { url, from = '' } = request
      const host = hostAndPort(url)
      const turn = { from, signal: within(timeouts.waitMs) }
      try {
        return await hosts.memo(host).use(turn, async () => {
          if (allowed.has(host)) return exchange(plain, request)
          addresses.set(url.hostname, await lookups.use(turn, () => lookUp(url.hostname)))
          return exchange(guarded, request)
        })
      } catch (error) {
        throw asOutboundError(error)
      }
    },
    async close() {
      closing.abort()
      await Promise.all([guarded.destroy(), plain.destroy()])
    },
  }
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
