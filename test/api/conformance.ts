/** Holds the answers of a server to its OpenAPI document, and remembers what was answered. */
import assert from 'node:assert/strict'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'
import { createEventParser, type StreamEvent } from '../../src/client/event-stream.ts'
import type { Answer, Document, Operation } from '../support/openapi.ts'

/** On every answer; the document does not repeat them for each. */
const ALWAYS = ['cache-control', 'x-content-type-options']
/** Of HTTP itself and of CORS. */
const GENERAL = [
  ...ALWAYS,
  ...[
    'connection',
    'content-length',
    'content-type',
    'date',
    'keep-alive',
    'transfer-encoding',
    'vary',
  ],
  ...['access-control-allow-origin', 'access-control-expose-headers'],
]
/** Every answer to a request that took from a limit has them. The document declares them with the 429. */
const OF_LIMITS = ['ratelimit', 'ratelimit-policy']

export type Ask = {
  params?: Record<string, string>
  query?: Record<string, string>
  headers?: Record<string, string>
  body?: string | Uint8Array<ArrayBuffer> | object
}
export type Reply = { status: number; headers: Headers; body: unknown }

/** Asks, demands this status unless it is null, and holds the answer to the document. */
export type Call = (operationId: string, status: number | null, ask?: Ask) => Promise<Reply>

export function createConformance({ paths }: Document) {
  const operations = new Map<string, Operation & { path: string; method: string }>()
  for (const [path, methods] of Object.entries(paths)) {
    for (const [method, operation] of Object.entries(methods)) {
      const known = operations.get(operation.operationId)
      assert.equal(known, undefined, `${operation.operationId} is the id of one operation`)
      operations.set(operation.operationId, { ...operation, path, method: method.toUpperCase() })
    }
  }
  const validators = new Map<string, ValidateFunction>()
  const answered = new Set<string>()

  return {
    /** Calls the operations of this server. */
    on:
      (server: { url: string }): Call =>
      async (operationId, status, ask = {}) => {
        const operation = operations.get(operationId)
        assert.ok(operation, `${operationId} is no operation`)
        const response = await fetch(
          server.url + pathOf(operation.path, ask),
          requestOf(operation, ask),
        )
        const what = `${operationId} ${response.status}`
        const declared = operation.responses[response.status]
        assert.ok(declared, `${what} is not described`)
        const type = response.headers.get('content-type')?.split(';')[0] ?? null
        const events = type === 'text/event-stream' ? await firstEvents(response) : null
        const bytes = events ? null : Buffer.from(await response.arrayBuffer())
        if (status !== null) assert.equal(response.status, status, `${what}: ${bytes}`)
        const hasBody = bytes === null || bytes.length > 0
        answered.add(what)
        hold({ declared, response, type: hasBody ? type : null, what })
        const limits = Object.keys(operation.responses[429]?.headers ?? {}).map(lowerCase)
        for (const name of OF_LIMITS) {
          const isDeclared = limits.includes(name) || !response.headers.has(name)
          assert.ok(isDeclared, `${what} has ${name}, undeclared with a 429`)
        }
        if (hasBody && type) answered.add(`${what} ${type}`)
        const isJson = type === 'application/json' || type === 'application/problem+json'
        const body: unknown = bytes && isJson && hasBody ? JSON.parse(bytes.toString()) : bytes
        const schema = declared.content?.[type ?? '']?.schema
        if (isJson && hasBody && schema) validate(schema, body, what)
        for (const event of events ?? []) validate(schema ?? {}, event, what)
        for (const [name] of response.headers) answered.add(`${what} ${name}`)
        return { status: response.status, headers: response.headers, body }
      },
    /** Operations, statuses, media types and headers that are declared and were not answered. */
    unanswered: (): string[] =>
      [...operations.values()].flatMap((operation) => missing(operation, answered)),
  }

  function validate(schema: object, body: unknown, what: string): void {
    // By its text: the same schema is in many operations, and compiling it is most of the time.
    const text = JSON.stringify(schema)
    const validator = validators.get(text) ?? newValidator(schema)
    validators.set(text, validator)
    assert.ok(
      validator(body),
      `${what}: ${JSON.stringify(body)} ${JSON.stringify(validator.errors)}`,
    )
  }
}

/** What a stream says at once. */
async function firstEvents({ body }: Response): Promise<StreamEvent[]> {
  const reader = body?.getReader()
  const { value } = (await reader?.read()) ?? {}
  await reader?.cancel()
  return value ? [...createEventParser().push(value)] : []
}

function newValidator(schema: object): ValidateFunction {
  return ajv().compile(closed(schema) as object)
}

/** Whether an example fits its schema. */
export function fits(schema: object, example: unknown): boolean {
  return ajv().compile(schema)(example)
}

/** One for all schemas: making it takes longer than compiling most of them. */
let made: Ajv2020 | null = null
function ajv(): Ajv2020 {
  if (made) return made
  made = new Ajv2020({ strict: true, strictTypes: false, allowUnionTypes: true })
  formats.default(made)
  made.addFormat('binary', true)
  // OpenAPI's own; `oneOf` beside it says as much.
  made.addKeyword('discriminator')
  return made
}

/** Objects may not have members that the document leaves out. */
function closed(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(closed)
  if (typeof node !== 'object' || node === null) return node
  const members = Object.entries(node).map(([key, value]) => [key, closed(value)])
  const isOpen = 'properties' in node && 'type' in node && !('additionalProperties' in node)
  return Object.fromEntries(isOpen ? [...members, ['additionalProperties', false]] : members)
}

function pathOf(path: string, { params = {}, query = {} }: Ask): string {
  const filled = path.replaceAll(/\{(\w+)\}/g, (_all, name: string) => params[name] ?? '')
  const search = new URLSearchParams(query).toString()
  return search === '' ? filled : `${filled}?${search}`
}

function requestOf({ method, requestBody }: Operation & { method: string }, ask: Ask): RequestInit {
  const { headers = {}, body } = ask
  const [type] = Object.keys(requestBody?.content ?? {})
  if (body === undefined) return { method, headers }
  const isText = typeof body === 'string' || body instanceof Uint8Array
  return {
    method,
    headers: { ...(type === undefined ? {} : { 'content-type': type }), ...headers },
    body: isText ? body : JSON.stringify(body),
  }
}

const lowerCase = (name: string): string => name.toLowerCase()

function hold({
  declared,
  response: { headers },
  type,
  what,
}: {
  declared: Answer
  response: Response
  type: string | null
  what: string
}): void {
  const names = Object.keys(declared.headers ?? {}).map(lowerCase)
  for (const [name] of headers) {
    const isGeneral = GENERAL.includes(name) || OF_LIMITS.includes(name)
    assert.ok(isGeneral || names.includes(name), `${what} has ${name}, undeclared`)
  }
  for (const name of ALWAYS) assert.ok(headers.has(name), `${what} has ${name}`)
  if (type !== null) assert.ok(declared.content?.[type], `${what} is ${type}, undeclared`)
}

function missing(
  { operationId, method, responses }: Operation & { method: string },
  answered: Set<string>,
) {
  const lines: string[] = []
  for (const [status, { headers = {}, content = {} }] of Object.entries(responses)) {
    const what = `${operationId} ${status}`
    if (!answered.has(what)) {
      lines.push(what)
      continue
    }
    const names = Object.keys(headers).filter((name) => !OF_LIMITS.includes(name.toLowerCase()))
    const types = method === 'HEAD' ? [] : Object.keys(content)
    for (const part of [...names.map((name) => name.toLowerCase()), ...types]) {
      if (!answered.has(`${what} ${part}`)) lines.push(`${what} ${part}`)
    }
  }
  const isLimited = Object.values(responses).some(({ headers = {} }) => 'RateLimit' in headers)
  const saysLimit = [...answered].some(
    (line) => line.startsWith(`${operationId} `) && line.endsWith(' ratelimit'),
  )
  return isLimited && !saysLimit ? [...lines, `${operationId} ratelimit`] : lines
}
