/** The official client of MCP, following events. It has no methods for them, and sends any. */
import assert from 'node:assert/strict'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { TOKEN_META } from '../../src/mcp-tools/shared.ts'
import type { After } from './folder.ts'

export type Occurrence = {
  eventId: string
  name: string
  timestamp: string
  data: Record<string, unknown>
  cursor?: string
}
export type Polled = {
  events: Occurrence[]
  cursor: string
  truncated: boolean
  hasMore: boolean
  nextPollMs: number
}
export type Notified = { method: string; params: Record<string, unknown> }
export type ErrorShown = { code: number; message: string; data?: Record<string, unknown> }

export type Follower = {
  poll(params: Record<string, unknown>): Promise<Polled>
  request(method: string, params: Record<string, unknown>): Promise<Record<string, unknown>>
  /** The error of a request. */
  fault(method: string, params: Record<string, unknown>): Promise<ErrorShown>
  stream(params: Record<string, unknown>): Stream
  capabilities(): unknown
}

export type Stream = {
  /** The next notification, without heartbeats. */
  next(): Promise<Notified>
  /** Resolves with the result, or rejects with the error, of the request. */
  ended: Promise<Record<string, unknown>>
  leave(): void
}

const ANY = {
  '~standard': {
    version: 1 as const,
    vendor: 'test',
    types: undefined as { input: unknown; output: Record<string, unknown> } | undefined,
    validate: (value: unknown) => ({ value: value as Record<string, unknown> }),
  },
}
/** Fails a test that waits for what never comes. */
const LONG_MS = 30_000

/** Connects a client that sends this token with each request. */
export async function follower(t: After, url: string, token?: string): Promise<Follower> {
  const connect = async () => {
    const client = new Client(
      { name: 'test', version: '1' },
      { versionNegotiation: { mode: { pin: '2026-07-28' } } },
    )
    await client.connect(new StreamableHTTPClientTransport(new URL('/mcp', url)))
    t.after(() => client.close())
    return client
  }
  const client = await connect()
  const withToken = (params: Record<string, unknown>) => ({
    ...params,
    ...(token === undefined ? {} : { _meta: { [TOKEN_META]: token } }),
  })
  const request: Follower['request'] = async (method, params) =>
    (await client.request({ method, params: withToken(params) } as never, ANY)) as Record<
      string,
      unknown
    >
  return {
    request,
    poll: async (params) => (await request('events/poll', params)) as never,
    async fault(method, params) {
      try {
        await request(method, params)
      } catch (error) {
        return error as ErrorShown
      }
      assert.fail(`${method} was answered`)
    },
    stream(params) {
      const told: Notified[] = []
      let wake = (): void => {}
      const leaving = new AbortController()
      const ended = connect().then((own) => {
        own.fallbackNotificationHandler = async (notification) => {
          if (notification.method === 'notifications/events/heartbeat') return
          told.push(notification as unknown as Notified)
          wake()
        }
        const asked = { method: 'events/stream', params: withToken(params) } as never
        return own.request(asked, ANY, { signal: leaving.signal, timeout: LONG_MS }) as Promise<
          Record<string, unknown>
        >
      })
      ended.catch(() => undefined)
      return {
        ended,
        leave: () => leaving.abort(),
        async next() {
          for (;;) {
            const [first] = told.splice(0, 1)
            if (first) return first
            await Promise.race([
              new Promise<void>((resolve) => {
                wake = resolve
              }),
              ended.then(
                () => (told.length > 0 ? undefined : assert.fail('the stream has ended')),
                (error) => (told.length > 0 ? undefined : Promise.reject(error)),
              ),
            ])
          }
        },
      }
    },
    capabilities: () => client.getServerCapabilities(),
  }
}
