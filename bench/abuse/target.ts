/** What an attack uses: the address of a service, any number of client networks, and money. */
import { randomUUID } from 'node:crypto'
import { connect, type Socket } from 'node:net'
import { createMayfly, type Mayfly } from '../../src/client/index.ts'

export type Inbox = { publicId: string; ownerToken: string }

export type Target = {
  url: string
  /** Ends the attack and closes its connections. */
  signal: AbortSignal
  /** Size of the store's files in bytes. */
  storeBytes(): number
  /** Adds a remark to the row. */
  note(text: string): void
  /** Says that the attack has harmed somebody whom the bystander does not see. */
  fail(text: string): void
}

/** The address of the n-th client network: `10.x.y.1`. */
export const networkAddress = (n: number): string => `10.${(n >> 8) & 255}.${n & 255}.1`

/** A client of the SDK with this address. */
export function mayflyFrom(url: string, address: string): Mayfly {
  return createMayfly({ baseUrl: url, fetch: fetchFrom(address) })
}

export function fetchFrom(address: string): typeof fetch {
  return (input, init) => {
    const headers = new Headers(init?.headers)
    headers.set('x-forwarded-for', address)
    return fetch(input, { ...init, headers })
  }
}

export async function pay(url: string, bolt11: string): Promise<string> {
  const answer = await fetch(`${url}/simulator/pay`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ bolt11 }),
  })
  return ((await answer.json()) as { preimage: string }).preimage
}

export function buyInbox(
  { url }: { url: string },
  planId: 'spark' | 'long',
  address: string,
): Promise<Inbox> {
  const onInvoice = async ({ bolt11 }: { bolt11: string }): Promise<void> => {
    await pay(url, bolt11)
  }
  return mayflyFrom(url, address).buyCatch({ planId, onInvoice })
}

/** Sends requests to an inbox as fast as its rate limit allows. Returns how many it stored. */
export async function fill(
  { url, signal }: Target,
  { publicId }: Inbox,
  { count, request }: { count: number; request: (n: number) => RequestInit },
): Promise<number> {
  let [begun, taken] = [0, 0]
  const sender = async (): Promise<void> => {
    while (begun < count && !signal.aborted) {
      begun++
      for (;;) {
        const answer = await fetch(`${url}/c/${publicId}`, { method: 'POST', ...request(begun) })
        await answer.arrayBuffer()
        if (answer.status === 204) taken++
        if (answer.status !== 429 || signal.aborted) break
        await pause(Math.min(1, Number(answer.headers.get('retry-after'))) * 1000, signal)
      }
    }
  }
  await Promise.all(Array.from({ length: 8 }, sender))
  return taken
}

/** Opens a connection that sends these bytes and reads nothing until the attack ends. */
export function openUnread({ url, signal }: Target, bytes: string | Buffer): Socket {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  socket.on('error', () => {})
  socket.pause()
  socket.write(bytes)
  signal.addEventListener('abort', () => socket.destroy(), { once: true })
  return socket
}

/** Sends a request like `openUnread`, and waits until it is sent or the service has closed the connection. */
export function sent(target: Target, head: string, body: Buffer): Promise<void> {
  return new Promise((resolve) => {
    const socket = openUnread(target, Buffer.concat([Buffer.from(head, 'latin1'), body]))
    socket.resume()
    socket.once('close', () => resolve())
    socket.once('drain', () => resolve())
    if (!socket.writableNeedDrain) resolve()
  })
}

/** The head of a GET with a token. */
export function get(
  path: string,
  token: string,
  { address, lastEventId }: { address: string; lastEventId?: number },
): string {
  const more = lastEventId === undefined ? '' : `Last-Event-ID: ${lastEventId}\r\n`
  return (
    `GET ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n` +
    `X-Forwarded-For: ${address}\r\n${more}\r\n`
  )
}

/** The head of an upload of a WHISPER. */
export function upload(bytes: number, plan: string, address: string): string {
  return (
    'POST /api/payments/whisper HTTP/1.1\r\nHost: x\r\nContent-Type: application/octet-stream\r\n' +
    `Content-Length: ${bytes}\r\nIdempotency-Key: ${randomUUID()}\r\nX-Whisper-Plan: ${plan}\r\n` +
    `X-Forwarded-For: ${address}\r\n\r\n`
  )
}

/** Waits for this time, or until the attack ends. */
export function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer)
      signal.removeEventListener('abort', done)
      resolve()
    }
    const timer = setTimeout(done, ms)
    if (signal.aborted) done()
    else signal.addEventListener('abort', done)
  })
}
