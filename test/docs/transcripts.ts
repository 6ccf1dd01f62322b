/** Replays the HTTP transcripts of a page: alternating requests and responses. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { type IncomingHttpHeaders, request } from 'node:http'

/**
 * Sends each request of the page and compares its answer. The placeholder `{name}` has the same value
 * everywhere: a given value, or the text in its place in an answer. Names that begin with `key` are new
 * UUIDs. A block `json name` is the JSON whose base64url is the value of that name.
 * @returns the number of requests.
 */
export async function replay(
  url: string,
  page: string,
  given: Record<string, string> = {},
): Promise<number> {
  const text = await readFile(new URL(`../../docs/${page}`, import.meta.url), 'utf8')
  const values = new Map(Object.entries(given))
  let asked: Message | null = null as Message | null
  let replayed = 0
  for (const { info, text: block } of blocksOf(text)) {
    if (info !== 'http') {
      assert.equal(asked, null, `${info} stands after a response`)
      standFor(info.replace('json ', ''), block, values)
    } else if (asked === null) {
      asked = parse(block)
    } else {
      const expected = parse(block)
      const answer = await send(url, asked, values)
      const where = `the answer to ${asked.line}`
      assert.equal(answer.line, expected.line, `${where}: ${answer.body}`)
      for (const [name, value] of joined(expected.headers)) {
        compare(value, answer.headers[name.toLowerCase()] ?? null, {
          values,
          where: `${name} of ${where}`,
        })
      }
      if (expected.body === '') assert.equal(answer.body, '', where)
      else compare(JSON.parse(expected.body), JSON.parse(answer.body), { values, where })
      asked = null
      replayed++
    }
  }
  assert.equal(asked, null, 'requests and responses take turns')
  return replayed
}

/** The blocks with HTTP messages, and the blocks `json name`. */
function blocksOf(page: string): { info: string; text: string }[] {
  const blocks = page.matchAll(/^```(http|json \w+)\n(.*?)\n```$/gms)
  return [...blocks].map(([, info = '', text = '']) => ({ info, text }))
}

/** Compares the JSON with the value of the name, or sets the value from the JSON if it has none. */
function standFor(name: string, text: string, values: Map<string, string>): void {
  const known = values.get(name)
  if (known === undefined) {
    const json = JSON.stringify(JSON.parse(fill(text, values)))
    values.set(name, Buffer.from(json).toString('base64url'))
  } else {
    compare(JSON.parse(text), JSON.parse(Buffer.from(known, 'base64url').toString()), {
      values,
      where: name,
    })
  }
}

type Message = { line: string; headers: [name: string, value: string][]; body: string }
type Answer = { line: string; headers: IncomingHttpHeaders; body: string }

function parse(text: string): Message {
  const [head = '', ...body] = text.split('\n\n')
  const [line = '', ...headers] = head.split('\n')
  return {
    line,
    headers: headers.map((header) => {
      const [, name = '', value = ''] = /^([^:]+): (.*)$/.exec(header) ?? []
      assert.ok(name, `a header reads "${header}"`)
      return [name, value]
    }),
    body: body.join('\n\n'),
  }
}

/** The lines of a field as Node tells them: joined. */
function joined(headers: Message['headers']): Message['headers'] {
  const names = new Set(headers.map(([name]) => name))
  return [...names].map((name) => [
    name,
    headers
      .filter(([other]) => other === name)
      .map(([, value]) => value)
      .join(', '),
  ])
}

/** Sends a request of the page, with its placeholders filled in. */
function send(url: string, message: Message, values: Map<string, string>): Promise<Answer> {
  const { hostname, port } = new URL(url)
  const [, method, path, version] = /^([A-Z]+) (\/\S*) (HTTP\/1\.1)$/.exec(message.line) ?? []
  assert.ok(method && path && version, `a request line reads "${message.line}"`)
  const headers = message.headers.map(([name, value]): [string, string] =>
    // `Host` stays as in the page, whatever the port, because an inbox counts its bytes.
    name === 'Host' ? [name, value] : [name, fill(value, values)],
  )
  return new Promise((resolve, reject) => {
    const sent = request(
      { hostname, port, method, path: fill(path, values), headers: Object.fromEntries(headers) },
      (response) => {
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => chunks.push(chunk))
        response.on('error', reject)
        response.on('end', () =>
          resolve({
            line: `HTTP/1.1 ${response.statusCode} ${response.statusMessage}`,
            headers: response.headers,
            body: Buffer.concat(chunks).toString('utf8'),
          }),
        )
      },
    )
    sent.on('error', reject)
    sent.end(fill(message.body, values))
  })
}

/** Fills in the placeholders. A name without a value gets a new key. */
function fill(text: string, values: Map<string, string>): string {
  return text.replaceAll(/\{(\w+)\}/g, (placeholder, name: string) => {
    if (!values.has(name)) {
      assert.match(name, /^key/, `no answer gave ${placeholder} a value`)
      values.set(name, randomUUID())
    }
    return values.get(name) ?? ''
  })
}

/** The values of the placeholders so far, and a description of what is compared. */
type Place = { values: Map<string, string>; where: string }

/** Asserts that both have the same shape and values. Where a placeholder stands, its value must be. */
function compare(expected: unknown, actual: unknown, { values, where }: Place): void {
  if (typeof expected === 'string' && PLACEHOLDER.test(expected)) {
    assert.ok(typeof actual === 'string', `${where} is a text`)
    compareText(expected, actual, { values, where })
  } else if (typeof expected === 'object' && expected !== null) {
    assert.ok(typeof actual === 'object' && actual !== null, where)
    const { [ELISION]: elided, ...shown } = expected as Record<string, unknown>
    const members = Object.keys(actual).filter((name) => elided === undefined || name in shown)
    assert.deepEqual(members, Object.keys(shown), `members of ${where}`)
    for (const [member, value] of Object.entries(shown)) {
      const other = (actual as Record<string, unknown>)[member]
      compare(value, other, { values, where: `${member} of ${where}` })
    }
  } else {
    assert.equal(actual, expected, where)
  }
}

/** The member `"…": "…"` stands for members that the page does not show. */
const ELISION = '…'
const PLACEHOLDER = /\{(\w+)\}/

function compareText(expected: string, actual: string, { values, where }: Place): void {
  const names: string[] = []
  const pattern = expected.split(/(\{\w+\})/).map((part) => {
    const name = PLACEHOLDER.exec(part)?.[1]
    const known = name === undefined ? part : values.get(name)
    if (known !== undefined) return known.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')
    names.push(name ?? '')
    return '(.+)'
  })
  const found = new RegExp(`^${pattern.join('')}$`).exec(actual)
  assert.ok(found, `${where} is ${expected}, not ${actual}`)
  for (const [i, name] of names.entries()) values.set(name, found[i + 1] ?? '')
}
