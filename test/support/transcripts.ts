/** Replays the HTTP transcripts of a page: requests and responses that take turns. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { type IncomingHttpHeaders, request } from 'node:http'

/**
 * Sends each request of the page and compares its answer. `{name}` stands for a value; those that
 * are not given come from the answers, and a name that begins with `key` is a fresh UUID.
 * @returns how many messages there were.
 */
export async function replay(
  url: string,
  page: string,
  given: Record<string, string> = {},
): Promise<number> {
  const text = await readFile(new URL(`../../docs/${page}`, import.meta.url), 'utf8')
  const values = new Map(Object.entries(given))
  const messages = [...text.matchAll(/^```http\n(.*?)\n```$/gms)].map(([, message]) =>
    parse(message ?? ''),
  )
  for (let i = 0; i < messages.length; i += 2) {
    const [asked, expected] = [messages[i], messages[i + 1]]
    assert.ok(asked && expected, 'requests and responses take turns')
    const answer = await send(url, asked, values)
    const where = `the answer to ${asked.line}`
    assert.equal(answer.line, expected.line, `${where}: ${answer.body}`)
    for (const [name, value] of expected.headers) {
      compare(value, answer.headers[name.toLowerCase()] ?? null, values, `${name} of ${where}`)
    }
    if (expected.body === '') assert.equal(answer.body, '', where)
    else compare(JSON.parse(expected.body), JSON.parse(answer.body), values, where)
  }
  return messages.length
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

function send(url: string, message: Message, values: Map<string, string>): Promise<Answer> {
  const { hostname, port, host } = new URL(url)
  const [, method, path, version] = /^([A-Z]+) (\/\S*) (HTTP\/1\.1)$/.exec(message.line) ?? []
  assert.ok(method && path && version, `a request line reads "${message.line}"`)
  const headers = message.headers.map(([name, value]): [string, string] =>
    name === 'Host' ? [name, host] : [name, fill(value, values)],
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

function fill(text: string, values: Map<string, string>): string {
  return text.replaceAll(/\{(\w+)\}/g, (placeholder, name: string) => {
    if (!values.has(name)) {
      assert.match(name, /^key/, `no answer gave ${placeholder} a value`)
      values.set(name, randomUUID())
    }
    return values.get(name) ?? ''
  })
}

/** Equal in shape and in every value that is no placeholder; a placeholder is one value for good. */
function compare(
  expected: unknown,
  actual: unknown,
  values: Map<string, string>,
  where: string,
): void {
  if (typeof expected === 'string') {
    assert.ok(typeof actual === 'string', `${where} is a text`)
    compareText(expected, actual, values, where)
  } else if (typeof expected === 'object' && expected !== null) {
    assert.ok(typeof actual === 'object' && actual !== null, where)
    assert.deepEqual(Object.keys(actual), Object.keys(expected), `members of ${where}`)
    for (const [member, value] of Object.entries(expected)) {
      const other = (actual as Record<string, unknown>)[member]
      compare(value, other, values, `${member} of ${where}`)
    }
  } else {
    assert.equal(actual, expected, where)
  }
}

function compareText(
  expected: string,
  actual: string,
  values: Map<string, string>,
  where: string,
): void {
  const names: string[] = []
  const pattern = expected
    .split(/(\{\w+\})/)
    .map((part) => {
      const [, name] = /^\{(\w+)\}$/.exec(part) ?? []
      if (name === undefined) return part.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')
      names.push(name)
      return '(.+?)'
    })
    .join('')
  const found = new RegExp(`^${pattern}$`).exec(actual)
  assert.ok(found, `${where} reads "${actual}"`)
  for (const [i, name] of names.entries()) {
    const value: string = found[i + 1] ?? ''
    assert.equal(value, values.get(name) ?? value, `{${name}} in ${where}`)
    values.set(name, value)
  }
}
