import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'

// What a browser loads as it stands: every import, followed to the end, is a relative file.
for (const entry of [
  'auth-params',
  'accept',
  'payment-auth',
  'l402',
  'gate-binding',
  'gate-receipt',
]) {
  test(`${entry}.ts reaches no bare import`, () => {
    const queue = [new URL(`../../src/protocol/${entry}.ts`, import.meta.url)]
    const seen = new Set<string>()
    for (const url of queue) {
      if (seen.has(url.href)) continue
      seen.add(url.href)
      for (const [, specifier = ''] of readFileSync(url, 'utf8').matchAll(/ from '([^']+)'/g)) {
        assert.match(specifier, /^\.\.?\//, url.pathname)
        queue.push(new URL(specifier, url))
      }
    }
  })
}
