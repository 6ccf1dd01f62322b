/** One rule for what nobody sees, wherever a stranger's text is shown. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { harmless } from '../../src/cli/text.ts'
import { toCurl } from '../../src/client/export.ts'
import type { CatchEvent } from '../../src/client/index.ts'
import { hasInvisible, replaceInvisible } from '../../src/lib/invisible.ts'
import { jsonEscape } from '../../src/lib/json.ts'
import { badge } from '../../src/pulse/badge.ts'
import { PulseSettings } from '../../src/pulse/schema.ts'
import { readAs } from '../../src/pulse/settings.ts'
import { escapeSteering, resultText } from '../../src/tools/strangers.ts'
import { plainly } from '../../src/web/lib/foreign.ts'

/** What stands for each kind: controls, directions, separators, no width, fillers, tags, private, broken, none. */
const INVISIBLE = [
  ...['\u0000', '\u001b', '\u007f', '\u009b', '\u061c', '\u200e', '\u202e', '\u2066', '\u2069'],
  ...['\u2028', '\u2029', '\u00ad', '\u034f', '\u115f', '\u180e', '\u200b', '\u200d', '\u2060'],
  ...['\u3164', '\ufe0f', '\ufeff', '\uffa0', '\ufff9', '\uffff', '\u{e0041}', '\u{e0100}'],
  ...['\ue000', '\ud800', '\udfff', '\u{1d173}', '\u{10ffff}'],
]
const VISIBLE = [
  'déjà vu',
  '日本語',
  'e\u0301',
  '❤\ufe0f 👩🏽\u200d💻 👩\u200d👩\u200d👧',
  '🇩🇪',
  '\u00a0',
  'ـ',
]

test('what nobody sees is shown or refused the same everywhere', () => {
  const shows: [string, (text: string) => string][] = [
    ['pages', plainly],
    ['command line', harmless],
    ['MCP', escapeSteering],
    ['results of MCP', resultText],
    ['badge', (name) => badge(name, 'operational')],
    ['curl', (body) => toCurl(withBody(body), { url: 'https://example.com' })],
  ]
  for (const character of INVISIBLE) {
    const code = `U+${character.codePointAt(0)?.toString(16)}`
    const text = `a${character}b`
    assert.ok(hasInvisible(text), code)
    for (const [where, show] of shows)
      assert.ok(!show(text).includes(character), `${where}: ${code}`)
    const refused = { phrase: 'invalid settings' }
    assert.throws(() => readAs(PulseSettings, { name: text }), refused, code)
  }
})

test('what is seen stays as it is everywhere, such as an emoji of several characters', () => {
  for (const text of VISIBLE) {
    assert.equal(hasInvisible(text), false, text)
    assert.deepEqual([plainly(text), harmless(text), escapeSteering(text)], [text, text, text])
    assert.equal(readAs(PulseSettings, { name: text }).name, text)
  }
})

test('what joins emojis joins nothing else, and no second one hides behind it', () => {
  for (const text of ['1\u200d2', 'a\ufe0fb', '❤\ufe0f\ufe0f', '💻\u200dx', '💻\u200d\u200d💻']) {
    assert.ok(hasInvisible(text), JSON.stringify(text))
  }
})

test('a text that is escaped for JSON is the same text', () => {
  const text = INVISIBLE.join('x')
  const json = `"${replaceInvisible(text, jsonEscape)}"`
  assert.match(json, /^[\x20-\x7e]*$/)
  assert.equal(JSON.parse(json), text)
})

const withBody = (body: string) =>
  ({
    method: 'POST',
    path: '/',
    query: '',
    headers: [],
    body,
    bodyEncoding: 'utf8',
    bodyBytes: 3,
  }) as unknown as CatchEvent
