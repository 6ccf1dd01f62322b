import assert from 'node:assert/strict'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { type After, temporaryFolder } from './support/folder.ts'
import { startProgram } from './support/program.ts'
import { until } from './support/until.ts'

/** What only some services need. Their libraries are more than half of all files. */
const OPTIONAL = {
  'the engine of PostgreSQL': /\/node_modules\/pg\/|\/db\/postgres\//,
  'the clients of Lightning nodes':
    /\/node_modules\/undici\/|\/lightning\/(?:lnd|cln|phoenixd|nwc)\//,
  GATE: /\/node_modules\/jose\/|\/gate\/(?!product|limits|schema)/,
  'the metrics': /\/node_modules\/prom-client\/|\/src\/metrics\//,
  'the library that signs invoices': /\/node_modules\/tiny-secp256k1\//,
  'the library of location databases': /\/node_modules\/(?:maxmind|mmdb-lib)\//,
  'the maker of the OpenAPI document': /\/node_modules\/(?:@fastify\/swagger|yaml)\//,
  "Fastify's own compilers of schemas": /\/node_modules\/(?:ajv|@fastify\/ajv-compiler)\//,
  "TypeBox's type system": /\/node_modules\/typebox\/build\/(?:type\/(?!types)|value|compile)\//,
  'the other limiters of the library': /RateLimiter(?:Redis|Mongo|Postgres)/,
  'the commands of clients': /\/src\/client\/(?:index|payments|whisper)\.ts|\/src\/cli\/buy\.ts/,
}

/** Node's own files are not counted. A start has some 990, of which TypeBox's builders are more than half. */
const MAX_FILES = 1_010

/** The files that a service has loaded when it listens. */
async function filesOf(t: After, environment: Record<string, string> = {}): Promise<string[]> {
  const folder = await temporaryFolder(t)
  const list = join(folder, 'list.json')
  const recorder = join(folder, 'recorder.mjs')
  await writeFile(
    recorder,
    `import { appendFileSync } from 'node:fs'
    import { registerHooks } from 'node:module'
    import { isMainThread } from 'node:worker_threads'
    if (isMainThread) registerHooks({ load(url, context, next) {
      if (!url.startsWith('node:')) appendFileSync(${JSON.stringify(list)}, JSON.stringify(url) + '\\n')
      return next(url, context)
    } })`,
  )
  const program = await startProgram(t, join(folder, 'mayfly.db'), {
    environment: { NODE_OPTIONS: `--import=${pathToFileURL(recorder)}`, ...environment },
  })
  assert.equal((await fetch(`${program.url}/health`)).status, 200)
  const lines = (await readFile(list, 'utf8')).trim().split('\n')
  return lines.map((line) => String(JSON.parse(line)))
}

suite('what a start loads', () => {
  test('a start with the defaults loads nothing that it does not use', async (t) => {
    const files = await filesOf(t)
    const loaded = Object.entries(OPTIONAL).flatMap(([what, pattern]) => {
      const some = files.find((file) => pattern.test(file))
      return some ? [`${what}: ${some}`] : []
    })
    assert.deepEqual(loaded, [])
    assert.ok(files.some((file) => file.endsWith('/src/db/sqlite/sqlite.ts')))
    assert.ok(files.length <= MAX_FILES, `${files.length} files`)
  })

  test('a start with GATE and metrics loads them, and nothing of the others', async (t) => {
    const files = await filesOf(t, { MAYFLY_GATE: 'on', MAYFLY_METRICS_PORT: '0' })
    const loaded = Object.entries(OPTIONAL).filter(([, pattern]) =>
      files.some((file) => pattern.test(file)),
    )
    const names = loaded.map(([what]) => what)
    // GATE asks the providers of its projects, by the same client as the nodes.
    assert.deepEqual(names, ['the clients of Lightning nodes', 'GATE', 'the metrics'])
  })
})

test('a service leaves a compile cache soon after its start, even if it is killed later', async (t) => {
  const cache = await temporaryFolder(t)
  const program = await startProgram(t, join(await temporaryFolder(t), 'mayfly.db'), {
    environment: { NODE_COMPILE_CACHE: cache },
  })
  await until('the cache has the files of the service', async () => {
    const files = await readdir(cache, { recursive: true })
    return files.length > 300
  })
  await program.kill()
})
