import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { test } from 'node:test'
import { readSources } from '../../scripts/check-arrows.ts'
import { findStale } from '../../scripts/generate.ts'
import { ALL_LIMITS } from '../../src/service/products.ts'

test('every generated file is as the code would write it', async () => {
  assert.deepEqual(await findStale(), [])
})

test('the operator finds every warning and error of the log, and each event at its level', async () => {
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
    const calls = text.matchAll(/\blog\.(info|warn|error)\(\{\s*event: '([a-z_.]+)'/g)
    const guarded = text.matchAll(/\b(guarded)\(\s*'([a-z_.]+)'/g)
    for (const [, how = '', name = ''] of [...calls, ...guarded]) {
      found++
      const level = how === 'guarded' ? 'error' : how
      const shown = documented.get(name) ?? 'info'
      if (shown !== level) wrong.push(`${name} is logged as ${level}, not as ${shown}`)
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
