/** HTTP to LND's REST port: bounded in time and size. Every failure is a `NodeError`. */
import { isObject, objectIn } from '../../lib/json.ts'
import { quotable } from '../../lib/quotable.ts'
import { type NodeError, transportError } from '../node/error.ts'
import { createNodeHttp, MAX_BODY_BYTES } from '../node/http.ts'
import { type Fields, jsonOf } from '../node/json-fields.ts'
import { lndError } from './answers.ts'

const read = jsonOf('LND')

export type LndHttp = {
  /** The JSON of a 200 answer. `timeoutMs` includes connecting and reading the last byte. */
  call(request: LndCall): Promise<Fields>

  /** The lines of an endless answer, until `signal` aborts. One that is too long is empty. */
  lines(path: string, signal: AbortSignal): AsyncGenerator<string>

  close(): Promise<void>
}

export type LndCall = {
  /** What the call does, for error messages: `looking up an invoice`. */
  what: string
  method: 'GET' | 'POST'
  path: string
  body?: Record<string, string | boolean>
  timeoutMs: number
}

export function createLndHttp(options: {
  baseUrl: string
  /** The macaroon in hex. */
  macaroon: string
  /** The PEM of the certificate that the node's must chain to. Default: the system's roots. */
  certificate: string | undefined
  connectTimeoutMs: number
}): LndHttp {
  const headers = { 'grpc-metadata-macaroon': options.macaroon }
  const http = createNodeHttp({ ...options, node: 'LND', headers })

  async function call({ body, ...request }: LndCall): Promise<Fields> {
    const { status, text } = await http.exchange({ ...request, ...(body ? { json: body } : {}) })
    if (status !== 200) throw refusal(request.what, status, text)
    return read.parse(text)
  }

  async function* lines(path: string, signal: AbortSignal): AsyncGenerator<string> {
    const what = 'following the invoices'
    try {
      const response = await http.open({ what, method: 'GET', path, signal })
      if (response.status !== 200) throw refusal(what, response.status, await response.text())
      yield* linesOf(response.body, MAX_BODY_BYTES)
    } catch (error) {
      throw transportError('LND', what, signal.reason ?? error)
    }
  }

  return { call, lines, close: http.close }
}

/** The error in LND's `{code, message, details}`, or one with the status alone if a proxy answered. */
function refusal(what: string, status: number, text: string): NodeError {
  const answer = refusalAnswer(text)
  if (!answer) return lndError('malformed', `${what} got HTTP ${status} that is not LND's`)
  return lndError('refused', `${what} was refused: ${answer.message}`, answer)
}

function refusalAnswer(text: string): { code: number; message: string } | null {
  const body = objectIn(text)
  // A streaming call wraps the same fields.
  const { code, message } = isObject(body?.error) ? body.error : (body ?? {})
  if (typeof code !== 'number' || typeof message !== 'string') return null
  return { code, message: quotable(message) }
}

/** Each line, once it has ended. One of more than `maxBytes` is dropped while it is read, and given as an empty one. */
async function* linesOf(body: AsyncIterable<Buffer>, maxBytes: number): AsyncGenerator<string> {
  /** What there is of a line, or null if that is too much. */
  let parts: Buffer[] | null = []
  let bytes = 0
  for await (const chunk of body) {
    let from = 0
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, from)) {
      add(chunk.subarray(from, end))
      yield Buffer.concat(parts ?? []).toString('utf8')
      parts = []
      bytes = 0
      from = end + 1
    }
    add(chunk.subarray(from))
  }

  function add(part: Buffer): void {
    bytes += part.length
    if (bytes > maxBytes) parts = null
    parts?.push(part)
  }
}
