/**
 * A small pooler in front of a real PostgreSQL, as PgBouncer is one: clients log in at the pooler, and it lends them
 * sessions of the server, each until its client leaves or only until the transaction ends.
 */
import { createServer, type Socket } from 'node:net'
import { Client } from 'pg'
import type { After } from '../../support/folder.ts'
import { serve } from '../../support/serving.ts'

export type PoolerOptions = {
  mode: 'session' | 'transaction' | 'statement'
  /** As many sessions as the pooler has at most. Default: as many as are asked for. */
  sessions?: number
  /** Sessions that are there from the beginning. */
  warm?: number
  /** Which idle session is lent next: the one that was used last, or each in turn. */
  next?: 'last' | 'each in turn'
  /** Whether clients wait for a session without end, or are sent away. */
  others?: 'wait' | 'go'
  /** Whether it prepares a client's statements on each session that it lends, as PgBouncer does since 1.21. */
  statements?: 'lost' | 'prepared'
}

/** What a client sends at once, the statements that it prepares there, and those that it has prepared earlier. */
type Pipeline = { messages: Buffer[]; prepares: string[]; uses: Map<string, Buffer> }
type Lent = {
  server: Socket
  owner: Socket | null
  prepared: Set<string>
  /** Answers to what the client has not sent. */
  unasked: number
}

/** What the pooler tells its clients, who log in with any password. The number of the process is its own. */
const WELCOME = Buffer.concat([
  message('R', [0, 0, 0, 0]),
  message('K', [0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0]),
  message('Z', 'I'),
])
/** PgBouncer says so in place of the end of what has begun a transaction. */
const NO_TRANSACTIONS = message('E', 'SFATAL\0C08P01\0Mtransaction blocks not allowed\0\0')
const WAITED_TOO_LONG = message('E', 'SFATAL\0C08P01\0Mquery_wait_timeout\0\0')

export async function startPooler(
  t: After,
  databaseUrl: string,
  {
    mode,
    sessions = Number.POSITIVE_INFINITY,
    warm = 0,
    next = 'last',
    others = 'wait',
    statements = 'lost',
  }: PoolerOptions,
) {
  const idle: Lent[] = []
  const all = new Set<Lent>()
  const queue: { client: Socket; pipeline: Pipeline }[] = []
  const lent = new Map<Socket, Lent>()
  const ran: string[][] = []
  let opening = 0

  async function open(): Promise<Lent> {
    const login = new Client({ connectionString: databaseUrl })
    login.on('error', () => undefined)
    await login.connect()
    // From here on the bytes are the clients'.
    const server = (login as unknown as { connection: { stream: Socket } }).connection.stream
    server.removeAllListeners('data')
    const one: Lent = { server, owner: null, prepared: new Set(), unasked: 0 }
    all.add(one)
    const read = framesOf((type, bytes) => {
      const { owner } = one
      if (type === '1' && one.unasked > 0) {
        one.unasked--
        return
      }
      const isInTransaction = type === 'Z' && bytes[5] !== 'I'.charCodeAt(0)
      if (isInTransaction && mode === 'statement') return void owner?.end(NO_TRANSACTIONS)
      owner?.write(bytes)
      if (type === 'Z' && !isInTransaction && mode !== 'session') release(one)
    })
    server.on('data', read)
    server.on('close', () => all.delete(one))
    return one
  }

  function release(one: Lent): void {
    if (one.owner) lent.delete(one.owner)
    one.owner = null
    idle.push(one)
    lend()
  }

  function send(one: Lent, { messages, prepares, uses }: Pipeline): void {
    for (const [name, parse] of uses) {
      if (statements === 'lost' || one.prepared.has(name)) continue
      one.prepared.add(name)
      one.unasked++
      one.server.write(parse)
    }
    for (const name of prepares) one.prepared.add(name)
    one.server.write(Buffer.concat(messages))
  }

  function lend(): void {
    for (let first = queue[0]; first; first = queue[0]) {
      const one = next === 'last' ? idle.pop() : idle.shift()
      if (one) {
        queue.shift()
        one.owner = first.client
        lent.set(first.client, one)
        send(one, first.pipeline)
      } else if (opening < queue.length && all.size + opening < sessions) {
        opening++
        void open().then((opened) => {
          opening--
          idle.push(opened)
          lend()
        })
      } else if (others === 'go' && opening === 0) {
        queue.shift()
        first.client.end(WAITED_TOO_LONG)
      } else return
    }
  }

  const listener = createServer((client) => {
    let isWelcome = false
    const parsed = new Map<string, Buffer>()
    const begin = (): Pipeline => ({ messages: [], prepares: [], uses: new Map() })
    let pipeline = begin()
    const own: string[] = []
    ran.push(own)
    const read = framesOf((type, bytes) => {
      if (type === 'X') return void client.end()
      const [first = '', second = ''] = bytes.toString('utf8', 5).split('\0')
      pipeline.messages.push(bytes)
      if (type === 'P') {
        parsed.set(first, bytes)
        pipeline.prepares.push(first)
      }
      const used = type === 'B' ? parsed.get(second) : undefined
      if (used) {
        own.push(used.toString())
        if (!pipeline.prepares.includes(second)) pipeline.uses.set(second, used)
      }
      if (type !== 'S') return
      const whole = pipeline
      pipeline = begin()
      const one = lent.get(client)
      if (one) send(one, whole)
      else {
        queue.push({ client, pipeline: whole })
        lend()
      }
    })
    client.on('data', (bytes: Buffer) => {
      if (isWelcome) return read(bytes)
      isWelcome = true
      client.write(WELCOME)
    })
    client.on('error', () => undefined)
    client.on('close', () => {
      const one = lent.get(client)
      lent.delete(client)
      // What the client has set ends with its session.
      if (one) {
        all.delete(one)
        one.server.destroy()
      }
      const place = queue.findIndex((waiting) => waiting.client === client)
      if (place !== -1) queue.splice(place, 1)
      lend()
    })
  })
  const { port } = new URL(await serve(t, listener))
  t.after(() => {
    for (const { server } of all) server.destroy()
  })
  idle.push(...(await Promise.all(Array.from({ length: warm }, open))))
  return {
    /** The URL of the database through the pooler. */
    url: databaseUrl.replace(/:\d+\//, `:${port}/`),
    /** Clients that wait, while all sessions are lent. */
    waiting: () => (opening === 0 ? queue.length : 0),
    /** How often each client has run a statement that contains this text. */
    runs: (text: string) => ran.map((own) => own.filter((one) => one.includes(text)).length),
  }
}

/** Calls `each` with the type and the bytes of every message, however they are cut into chunks. */
function framesOf(each: (type: string, bytes: Buffer) => void): (chunk: Buffer) => void {
  let rest: Buffer = Buffer.alloc(0)
  return (chunk) => {
    rest = Buffer.concat([rest, chunk])
    while (rest.length >= 5 && rest.length > rest.readInt32BE(1)) {
      const end = 1 + rest.readInt32BE(1)
      const bytes = rest.subarray(0, end)
      rest = rest.subarray(end)
      each(String.fromCharCode(bytes[0] ?? 0), bytes)
    }
  }
}

function message(type: string, body: string | number[]): Buffer {
  const bytes = Buffer.from(body as string)
  const head = Buffer.from(`${type}\0\0\0\0`)
  head.writeInt32BE(bytes.length + 4, 1)
  return Buffer.concat([head, bytes])
}
