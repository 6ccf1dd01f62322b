/**
 * `node scripts/generate.ts [--check]`: writes the generated files: openapi.json, docs/cli.md, and errors.md and
 * settings.md of docs/reference/. With `--check` it writes nothing, and exits with 1 if a file is out of date.
 */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { AI_CATALOG_PATH } from '../src/discovery/ai-catalog.ts'
import { L402_SERVICES_PATH } from '../src/discovery/l402-services.ts'
import { SKILLS_PATH, skillPath } from '../src/discovery/skills.ts'
import { ERRORS } from '../src/http/errors.ts'
import { PRODUCT_NAMES } from '../src/lib/product-names.ts'
import { OPTIONS, readConfig } from '../src/service/config.ts'
import { serve } from '../src/service/serve.ts'
import { cliPage } from './cli-page.ts'

/** The address in the document. The service that generates it has a random port. */
const BASE_URL = 'http://127.0.0.1:8402'
const MEND = 'npm run generate'

/** A file of the repository, and its up-to-date text. */
export type Generated = { file: string; text: string }

/** All generated files, from the current code. */
export async function generate(): Promise<Generated[]> {
  const [document] = await describeService()
  return [
    { file: 'openapi.json', text: `${JSON.stringify(document, null, 2)}\n` },
    // With the beta, because its operators look up its phrases there.
    {
      file: 'docs/reference/errors.md',
      text: errorsPage(whole(await describeService({ MAYFLY_GATE: 'on' }))),
    },
    { file: 'docs/cli.md', text: await cliPage() },
    { file: 'docs/reference/settings.md', text: settingsPage() },
  ]
}

/** A sentence for each generated file that is out of date. */
export async function findStale(): Promise<string[]> {
  const lines: string[] = []
  for (const { file, text } of await generate()) {
    const current = await readFile(path(file), 'utf8').catch(() => null)
    if (current !== text) lines.push(`${file} is stale. Run: ${MEND}`)
  }
  return lines
}

type Operation = { responses: Record<string, { description: string }> }
type OpenApi = {
  paths: Record<string, Record<string, Operation>>
  tags?: { externalDocs?: { url: string } }[]
}

/** Starts a service on a new store for a moment, and returns its document and those that it links. */
async function describeService(
  settings: Record<string, string> = {},
): Promise<[OpenApi, ...OpenApi[]]> {
  const folder = await mkdtemp(join(tmpdir(), 'mayfly-generate-'))
  try {
    const config = readConfig({
      MAYFLY_PORT: '0',
      MAYFLY_BASE_URL: BASE_URL,
      MAYFLY_DATABASE_URL: `sqlite:${join(folder, 'mayfly.db')}`,
      ...settings,
    })
    const server = await serve(config, pino({ level: 'silent' }))
    try {
      const read = async (path: string): Promise<OpenApi> =>
        (await (await fetch(server.url + path)).json()) as OpenApi
      const main = await read('/openapi.json')
      const linked = (main.tags ?? []).flatMap(({ externalDocs }) => externalDocs?.url ?? [])
      return [main, ...(await Promise.all(linked.map((url) => read(new URL(url).pathname))))]
    } finally {
      await server.stop()
    }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** The operations of all documents; only the descriptions of the answers are looked at, so these are resolved. */
function whole(documents: OpenApi[]): OpenApi {
  return {
    paths: Object.assign({}, ...documents.map((each) => resolved(each.paths, each))),
  }
}

/** With each `$ref` replaced by what it refers to. */
function resolved(node: unknown, document: object): unknown {
  if (Array.isArray(node)) return node.map((item) => resolved(item, document))
  if (typeof node !== 'object' || node === null) return node
  if ('$ref' in node) {
    const names = String(node.$ref).split('/').slice(1)
    const part = names.reduce(
      (at: unknown, name) => (at as Record<string, unknown>)[name],
      document,
    )
    return resolved(part, document)
  }
  return Object.fromEntries(
    Object.entries(node).map(([key, value]) => [key, resolved(value, document)]),
  )
}

const PURCHASE = [200, 400, 401, 402, 429]
const OWNER = [200, 401, 404, 429]
const OWNER_DELETES = [204, 401, 404, 429]

/** The statuses that the interface lists for its operations. Mayfly has added all other operations. */
const LISTED: Record<string, readonly number[]> = {
  'GET /health': [200],
  'GET /api/catalog': [200],
  'POST /api/payments/catch': PURCHASE,
  'POST /api/payments/whisper': PURCHASE,
  'POST /api/payments/pulse': PURCHASE,
  'GET /api/payments/{orderId}': [200, 402, 429],
  'GET /c/{publicId}': [204, 400, 401, 429],
  'GET /api/catch/{publicId}': OWNER,
  'DELETE /api/catch/{publicId}': OWNER_DELETES,
  'GET /api/catch/{publicId}/events': [200, 401, 429],
  'DELETE /api/catch/{publicId}/events/{eventId}': OWNER_DELETES,
  'GET /w/{publicId}': [200, 404, 425, 429],
  'POST /p/{publicId}': [204, 404, 429],
  'GET /api/pulse/{publicId}': OWNER,
  'PATCH /api/pulse/{publicId}': [200, 400, 401, 404, 429],
  'DELETE /api/pulse/{publicId}': OWNER_DELETES,
  'GET /api/pulse/public/{publicStatusId}': [200, 404],
  'POST /api/gate/intents': [400, 401, 402],
  'GET /api/gate/intents/{intentId}': [200, 402],
  'POST /api/gate/intents/{intentId}/prove': [200, 400, 401, 402],
  'GET /.well-known/gate-jwks.json': [200],
}
for (const method of ['HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
  LISTED[`${method} /c/{publicId}`] = LISTED['GET /c/{publicId}'] ?? []
}

function errorsPage(document: OpenApi): string {
  const phrases = Object.entries(ERRORS).map(
    ([phrase, { status, advice }]) => `| \`${phrase}\` | ${status} | ${cell(advice)} |`,
  )
  return `<!-- Generated by \`${MEND}\`. Change src/http/errors.ts or the routes, not this file. -->

# Errors

The body of every error is \`{"error": "<phrase>"}\`. The phrase is stable, and never repeats what was sent. A
400 charged, spent and stored nothing. It may also say which member or header is wrong, and what it must be:
\`{"error": "invalid settings", "field": "graceSeconds", "expected": "60 to 604800"}\`.

| phrase | status | meaning, and what to do |
|---|---|---|
${phrases.join('\n')}

## Extensions

These statuses and operations go beyond the interface that Mayfly implements. The paths of GATE exist only with
\`MAYFLY_GATE=on\`.

On every path:

| status | when |
|---|---|
| 400 | the request is not valid HTTP (\`invalid request body\`) |
| 404 | nothing is at this path |
| 405 | the path does not take this method; \`Allow\` lists those it takes |
| 408 | the request did not arrive in time |
| 431 | the request headers are above 32 KiB (\`request too large\`) |
| 500 | the service failed; the log has the same \`X-Request-Id\` |
| 503 | the store is away or full (\`service unavailable\`), if the operation needs it |

By operation:

| status | phrases | operations |
|---|---|---|
${extensions(document).join('\n')}

More operations, without 408, 500 and 503:

| operation | statuses |
|---|---|
${DOCUMENTS.map((path) => `| \`GET ${path}\` | 200 |`).join('\n')}
| \`GET /openapi-{product}.json\`, which /openapi.json links | 200 |
${additions(document).join('\n')}
`
}

/** The documents by which programs find the service, and which are not in the document of its operations. */
const DOCUMENTS = [
  '/llms.txt',
  '/openapi.json',
  AI_CATALOG_PATH,
  L402_SERVICES_PATH,
  SKILLS_PATH,
  skillPath('{product}'),
]

/** Statuses that every operation above may have. */
const EVERYWHERE = ['408', '500', '503 `service unavailable`']
const ANYWHERE = ['408', '500', '503']
const PURCHASES = PRODUCT_NAMES.map((name) => `\`POST /api/payments/${name}\``).join(', ')

/** A row for each status with its phrases, and the operations that answer with them. */
function extensions(document: OpenApi): string[] {
  const names = new Map<string, string[]>()
  for (const { name, responses } of operations(document)) {
    const listed = LISTED[name]
    if (!listed) continue
    for (const [status, { description }] of Object.entries(responses)) {
      const phrases = phrasesIn(description)
      const isAbove = EVERYWHERE.includes(status) || EVERYWHERE.includes(`${status} ${phrases}`)
      if (listed.includes(Number(status)) || isAbove) continue
      const row = `| ${status} | ${phrases}`
      names.set(row, [...(names.get(row) ?? []), `\`${name}\``])
    }
  }
  return [...names]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(
      ([row, operations]) => `${row} | ${operations.join(', ').replace(PURCHASES, 'purchases')} |`,
    )
}

function additions(document: OpenApi): string[] {
  return operations(document)
    .filter(({ name }) => !LISTED[name])
    .map(({ name, responses }) => {
      const statuses = Object.keys(responses).filter((status) => !ANYWHERE.includes(status))
      return `| \`${name}\` | ${statuses.join(', ')} |`
    })
}

function operations(document: OpenApi): ({ name: string } & Operation)[] {
  return Object.entries(document.paths).flatMap(([route, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      name: `${method.toUpperCase()} ${route}`,
      ...operation,
    })),
  )
}

function phrasesIn(description: string): string {
  return description
    .split(' · ')
    .map((phrase) => `\`${phrase}\``)
    .join(', ')
}

type Setting = { name: string; default: string; shown?: string; isSecret?: true; help: string }

function settingsPage(): string {
  const rows = Object.values<Setting>(OPTIONS).map((option) => {
    const shown = option.shown ?? `\`${option.default}\``
    const twin = option.isSecret ? ' †' : ''
    return `| \`${option.name}\`${twin} | ${cell(shown)} | ${cell(option.help)} |`
  })
  return `<!-- Generated by \`${MEND}\`. Change src/service/config.ts, not this file. -->

# Settings

Settings are environment variables. An unknown name that begins with \`MAYFLY_\`, or a bad value, stops the start with a
message that names it. † can also come from a file: set the name with \`_FILE\` at its end to the path of the file.

| name | default | meaning |
|---|---|---|
${rows.join('\n')}
`
}

const cell = (text: string): string => text.replaceAll('|', '\\|')

const path = (file: string): URL => new URL(`../${file}`, import.meta.url)

if (import.meta.main) {
  if (process.argv.includes('--check')) {
    const lines = await findStale()
    for (const line of lines) process.stderr.write(`${line}\n`)
    if (lines.length > 0) process.exitCode = 1
  } else {
    for (const { file, text } of await generate()) await writeFile(path(file), text)
  }
}
