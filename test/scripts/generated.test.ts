import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { test } from 'node:test'
import { readSources } from '../../scripts/check-arrows.ts'
import { findStale } from '../../scripts/generate.ts'
import { ALL_LIMITS } from '../../src/service/products.ts'

test('every generated file is as the code would write it', async () => {
  assert.deepEqual(await findStale(), [])
})

test('the operator finds every event of the log in docs/reference/log-metrics.md', async () => {
  const page = await readFile(
    new URL('../../docs/reference/log-metrics.md', import.meta.url),
    'utf8',
  )
  const documented = new Set([...page.matchAll(/`([a-z_.]+)`/g)].map(([, name]) => name))
  const logged = new Set<string | undefined>()
  for (const text of readSources().values()) {
    for (const [, name] of text.matchAll(
      /\bevent: '([a-z_]+\.[a-z_.]+|listening|stopped)'|guarded\('([a-z_.]+)'/g,
    )) {
      if (name !== undefined) logged.add(name)
    }
    for (const [, name] of text.matchAll(/\bguarded\(\s*'([a-z_.]+)'/g)) logged.add(name)
  }
  assert.ok(logged.has('listening'))
  assert.deepEqual(
    [...logged].filter((name) => !documented.has(name)),
    [],
  )
})

test('every event is logged at the level that the operator finds there', async () => {
  const page = await readFile(
    new URL('../../docs/reference/log-metrics.md', import.meta.url),
    'utf8',
  )
  const rows = page.matchAll(/^\| (`[a-z_.]+`(?:, `[a-z_.]+`)*) \| (\w+) \|/gm)
  const documented = new Map(
    [...rows].flatMap(([, names = '', level = '']) =>
      names.split(', ').map((name): [string, string] => [name.slice(1, -1), level]),
    ),
  )
  const wrong: string[] = []
  let found = 0
  for (const text of readSources().values()) {
    for (const [, level, name = ''] of text.matchAll(
      /\blog\.(info|warn|error)\(\{\s*event: '([a-z_.]+)'/g,
    )) {
      found++
      if (documented.get(name) !== level) wrong.push(`${name} is logged as ${level}`)
    }
  }
  assert.ok(found > 40, `${found}`)
  assert.deepEqual(wrong, [])
})

test('the operator finds every rate limit in docs/run/limits.md, as it is by default', async () => {
  const page = await readFile(new URL('../../docs/run/limits.md', import.meta.url), 'utf8')
  const rows = page.matchAll(/^\| `([\w.]+)` \| (\d+(?:\.\d+)?) \| (\d+) \|/gm)
  const documented = [...rows].map(([, name = '', perMinute, burst]) => ({
    name,
    perMinute: Number(perMinute),
    burst: Number(burst),
  }))
  const byName = (a: { name: string }, b: { name: string }) => (a.name < b.name ? -1 : 1)
  const limits = ALL_LIMITS.map(({ name, perMinute, burst }) => ({ name, perMinute, burst }))
  assert.deepEqual(documented.toSorted(byName), limits.toSorted(byName))
})
