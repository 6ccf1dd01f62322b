/** HTTP to LND's REST port: bounded in time and size. Every failure is a `NodeError`. */
import { isObject, objectIn } from '../../lib/json.ts'
import { type NodeAnswer, transportError } from '../node/error.ts'
import { createNodeHttp, MAX_BODY_BYTES, type NodeHttp, type NodeResponse } from '../node/http.ts'

export type LndHttp = {
  call: NodeHttp['call']

  /** The lines of an endless answer, until `signal` aborts. One that is too long is empty. */
  lines(path: string, signal: AbortSignal): AsyncGenerator<string>

  close(): Promise<void>
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
  const http = createNodeHttp({ ...options, node: 'LND', headers, answerOf })

  async function* lines(path: string, signal: AbortSignal): AsyncGenerator<string> {
    const what = 'following the invoices'
    try {
      const { status, body, text } = await http.open({ what, method: 'GET', path, signal })
      if (status !== 200) throw http.refusal(what, { status, text: await text() })
      yield* linesOf(body, MAX_BODY_BYTES)
    } catch (error) {
      throw transportError('LND', what, signal.reason ?? error)
    }
  }

  return { call: http.call, lines, close: http.close }
}

/** LND's `{code, message, details}`. */
function answerOf({ text }: NodeResponse): NodeAnswer | null {
  const body = objectIn(text)
  // A streaming call wraps the same fields.
  const { code, message } = isObject(body?.error) ? body.error : (body ?? {})
  return typeof code === 'number' && typeof message === 'string' ? { code, message } : null
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
