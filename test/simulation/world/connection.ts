/**
 * A connection to a server of the run, for one request. The server's end is what Node's HTTP server reads from and
 * writes to; the client's end is just enough HTTP to tell the answers of that server apart (RFC 9112).
 */
import type { Server } from 'node:http'
import { Duplex } from 'node:stream'

export type Request = {
  method: string
  target: string
  headers: Record<string, string>
  body: string | Uint8Array | undefined
  /** The client's address. */
  from: string
}

export type Response = {
  status: number
  /** The lines of a field, in order. */
  lines(name: string): string[]
  body: Buffer
  text: string
}

export type Connection = {
  /** The server's process has died. It will not read, write or close any more. */
  abandon(): void
}

const HEAD_END = '\r\n\r\n'

/** @param onAnswer is told null if the server ends the connection without a whole answer. */
export function connect(
  server: Server,
  request: Request,
  onAnswer: (answer: Response | null) => void,
): Connection {
  const written: Buffer[] = []
  let isAnswered = false
  const answer = (isEnded: boolean): void => {
    if (isAnswered) return
    const response = responseIn(Buffer.concat(written), request.method === 'HEAD')
    if (response === null && !isEnded) return
    isAnswered = true
    onAnswer(response)
  }
  const socket = new ServerSocket(request.from, {
    onWritten(part) {
      written.push(part)
      answer(false)
    },
    onEnded: () => answer(true),
  })
  server.emit('connection', socket)
  socket.push(bytesOf(request))
  return { abandon: () => socket.abandon() }
}

type Ends = { onWritten(part: Buffer): void; onEnded(): void }

/** What Node's server and the service ask of a socket. */
class ServerSocket extends Duplex {
  readonly remoteAddress: string
  readonly remotePort = 40_000
  readonly #ends: Ends
  /** Node's parser, which it keeps until the socket closes. */
  parser: { close(): void } | null = null

  constructor(from: string, ends: Ends) {
    super({ decodeStrings: true })
    this.remoteAddress = from
    this.#ends = ends
  }
  override _read(): void {}
  override _write(part: Buffer, _encoding: string, done: () => void): void {
    this.#ends.onWritten(part)
    done()
  }
  override _final(done: () => void): void {
    done()
    // The client has closed its end too, and both are gone.
    this.destroy()
  }
  override _destroy(_error: Error | null, done: () => void): void {
    this.#ends.onEnded()
    done()
  }
  setTimeout = (): this => this
  setNoDelay = (): this => this
  setKeepAlive = (): this => this
  /** A socket that never closes would stay in memory with its process. */
  abandon(): void {
    this.parser?.close()
    this.parser = null
  }
}

function bytesOf({ method, target, headers, body }: Request): Buffer {
  const hasBody = method !== 'GET' && method !== 'HEAD'
  const length = body === undefined ? 0 : Buffer.byteLength(body)
  const fields = {
    host: '127.0.0.1:8402',
    connection: 'close',
    ...(hasBody ? { 'content-length': String(length) } : {}),
    ...headers,
  }
  const head = [
    `${method} ${target} HTTP/1.1`,
    ...Object.entries(fields).map(([name, value]) => `${name}: ${value}`),
  ]
  const start = Buffer.from(head.join('\r\n') + HEAD_END, 'latin1')
  return hasBody && body !== undefined ? Buffer.concat([start, Buffer.from(body)]) : start
}

/** The answer, if all of it is there. */
function responseIn(bytes: Buffer, isHead: boolean): Response | null {
  const headEnd = bytes.indexOf(HEAD_END)
  if (headEnd < 0) return null
  const [statusLine = '', ...fields] = bytes.toString('latin1', 0, headEnd).split('\r\n')
  const status = Number(statusLine.split(' ')[1])
  const lines = (name: string): string[] =>
    fields
      .filter((line) => line.slice(0, line.indexOf(':')).toLowerCase() === name)
      .map((line) => line.slice(line.indexOf(':') + 1).trim())
  const rest = bytes.subarray(headEnd + HEAD_END.length)
  const isEmpty = isHead || status === 204 || status === 304
  const body = isEmpty ? Buffer.alloc(0) : bodyIn(rest, lines)
  return body && { status, lines, body, text: body.toString() }
}

/** RFC 9112 §6.3: by its chunks, or by its length. The server sends no others. */
function bodyIn(rest: Buffer, lines: Response['lines']): Buffer | null {
  if (lines('transfer-encoding').join() === 'chunked') return fromChunks(rest)
  const [length] = lines('content-length')
  if (length === undefined) throw new Error('an answer says not where it ends')
  return rest.length < Number(length) ? null : rest.subarray(0, Number(length))
}

/** RFC 9112 §7.1, without extensions and trailers. */
function fromChunks(rest: Buffer): Buffer | null {
  const chunks: Buffer[] = []
  for (let at = 0; ; ) {
    const sizeEnd = rest.indexOf('\r\n', at)
    if (sizeEnd < 0) return null
    const size = Number.parseInt(rest.toString('latin1', at, sizeEnd), 16)
    const from = sizeEnd + 2
    if (rest.length < from + size + 2) return null
    if (size === 0) return Buffer.concat(chunks)
    chunks.push(rest.subarray(from, from + size))
    at = from + size + 2
  }
}
