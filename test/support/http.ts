/** Plain requests, and checks of their answers and of the server's log. */
import assert from 'node:assert/strict'
import { type IncomingHttpHeaders, request } from 'node:http'
import { buffer } from 'node:stream/consumers'
import type { TestServer } from './server.ts'
import { type Exchanged, exchange } from './socket.ts'

/** The fields of a request. Without a value a field is left out, and a list sends a line for each. */
export type Fields = Record<string, string | string[] | null | undefined>

/** Sends a request on a connection of its own, with these fields and what HTTP needs. */
export function send(
  url: string,
  {
    method = 'GET',
    headers = {},
    body,
  }: {
    method?: string | undefined
    headers?: Fields
    body?: string | Uint8Array | undefined
  } = {},
) {
  return new Promise<{
    status: number
    headers: IncomingHttpHeaders
    /** The lines of each field, in order. */
    lines: Record<string, string[] | undefined>
    rawHeaders: string[]
    body: Buffer
  }>((resolve, reject) => {
    const given = Object.entries(headers).flatMap(([name, value]) =>
      value == null ? [] : [[name, value]],
    )
    const asked = request(url, { method, headers: Object.fromEntries(given), agent: false })
    asked.on('response', (response) => {
      const { statusCode: status = 0, headers, headersDistinct: lines, rawHeaders } = response
      buffer(response).then((body) => resolve({ status, headers, lines, rawHeaders, body }), reject)
    })
    asked.on('error', reject)
    asked.end(body)
  })
}

/** Sends a request. `line` is its method and target. */
export function ask(
  url: string,
  line: string,
  { headers = '', body = '' }: { headers?: string | undefined; body?: string | undefined } = {},
): Promise<Exchanged> {
  return exchange(url, `${line} HTTP/1.1\r\nHost: x\r\n${headers}Connection: close\r\n\r\n${body}`)
}

/** Asserts that the answer is this refusal: JSON with its phrase and, in a 400, what is wrong, never cached, never sniffed. */
export function assertError(answer: Exchanged, refusal: Refusal, note: string = refusal): void {
  const [status, phrase] = statusAndPhrase(refusal)
  assert.equal(answer.status, status, note)
  const { field, expected, ...body } = JSON.parse(answer.body)
  assert.deepEqual(body, { error: phrase }, note)
  if (status !== 400) assert.deepEqual([field, expected], [undefined, undefined], note)
  assert.equal(answer.headers.get('content-type'), 'application/json; charset=utf-8', note)
  assert.equal(answer.headers.get('cache-control'), 'no-store', note)
  assert.equal(answer.headers.get('x-content-type-options'), 'nosniff', note)
}

/** Status and phrase: `404 order not found`. */
export type Refusal = `${number} ${string}`

export function statusAndPhrase(refusal: Refusal): [status: number, phrase: string] {
  const at = refusal.indexOf(' ')
  return [Number(refusal.slice(0, at)), refusal.slice(at + 1)]
}

/** The log's lines about errors. */
export function errorsLogged({ logged }: TestServer): Record<string, unknown>[] {
  return logged
    .map((line) => JSON.parse(line) as Record<string, unknown>)
    .filter(({ level }) => Number(level) >= 50)
}
