import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'

const src = new URL('../../src/', import.meta.url)

test('the SDK loads nothing but its own plain files, so that a browser can load it', () => {
  const queue = [new URL('client/index.ts', src)]
  const seen = new Set<string>()
  for (const url of queue) {
    if (seen.has(url.href)) continue
    seen.add(url.href)
    assert.match(url.href.slice(src.href.length), /^(?:client|protocol|lib)\//)
    const text = readFileSync(url, 'utf8')
    assert.doesNotMatch(text, /^import (?!type |\{)/m, url.pathname)
    assert.doesNotMatch(text, /\b(?:Buffer|process|require)\b[.(]/, url.pathname)
    for (const [, specifier = ''] of text.matchAll(/^(?:im|ex)port \{[^}]*\} from '([^']+)'/gm)) {
      assert.match(specifier, /^\.\.?\//, url.pathname)
      queue.push(new URL(specifier, url))
    }
  }
  assert.ok(seen.size > 20, `${seen.size} files`)
})
