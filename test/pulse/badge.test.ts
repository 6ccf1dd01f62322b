import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { badge, NAME_COLOUR, STATE_COLOURS } from '../../src/pulse/badge.ts'
import { PULSE_STATES } from '../../src/pulse/schema.ts'

test('a badge says the name and the state', () => {
  assert.deepEqual(textsOf(badge('Nightly backup', 'operational')), [
    'Nightly backup: operational',
    'Nightly backup',
    'operational',
  ])
})

test('a badge without a name says the state alone', () => {
  for (const name of ['', '   ', '\u0000\u202e']) {
    assert.deepEqual(textsOf(badge(name, 'late')), ['late', 'late'])
  }
})

test('white text can be read on every colour (WCAG AA)', () => {
  for (const colour of [NAME_COLOUR, ...Object.values(STATE_COLOURS)]) {
    assert.ok(1.05 / (luminance(colour) + 0.05) >= 4.5, colour)
  }
})

test('no name breaks out of the document', () => {
  const names = [
    `</text><script>alert(1)</script>`,
    `" onload="alert(1)`,
    `' onload='alert(1)`,
    `]]>&xxe;<!ENTITY xxe SYSTEM "file:///etc/passwd">`,
    '<![CDATA[',
    '<!--',
    '&amp;',
    '&#0;',
  ]
  for (const name of names) {
    assert.equal(textsOf(badge(name, 'late'))[1], name)
    assert.doesNotMatch(badge(name, 'late'), /<(?:script|!|\?)/)
  }
})

test('a character that XML cannot hold, or that turns text around, is left out', () => {
  const name = 'a\u0000\u0008\u000b\u001f\u007f\u0085\u202e\u2066\ufffe\uffff\ud800b\r\n\tc'
  assert.equal(textsOf(badge(name, 'late'))[1], 'a b c')
})

test('any name makes a well-formed document', () => {
  fc.assert(
    fc.property(
      fc.string({ unit: 'binary', maxLength: 80 }),
      fc.constantFrom(...PULSE_STATES),
      (name, state) => {
        const document = badge(name, state)
        assert.ok(document.isWellFormed())
        assert.equal(textsOf(document).at(-1), state)
      },
    ),
  )
})

/** Reads a document as strictly as XML asks of what we write; the texts between its tags. */
function textsOf(document: string): string[] {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what XML 1.0 §2.2 leaves out
  assert.doesNotMatch(document, /[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/)
  const token =
    /<(?<close>\/)?(?<tag>[a-z]+)(?<attributes>(?: [a-zA-Z-]+="(?:[^"<&]|&(?:amp|lt|gt|quot|#39);)*")*)(?<empty>\/)?>|(?<text>(?:[^<>&]|&(?:amp|lt|gt|quot|#39);)+)/y
  const open: string[] = []
  const texts: string[] = []
  while (token.lastIndex < document.length) {
    const at = token.lastIndex
    const groups = token.exec(document)?.groups
    assert.ok(groups, `not well formed: ${document.slice(at, at + 40)}`)
    if (groups.text !== undefined) {
      if (groups.text.trim() !== '') texts.push(plain(groups.text))
    } else if (groups.close) {
      assert.equal(open.pop(), groups.tag)
    } else if (!groups.empty) {
      open.push(groups.tag ?? '')
    }
  }
  assert.deepEqual(open, [])
  return texts
}

function plain(text: string): string {
  return text
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&amp;', '&')
}

/** Relative luminance (WCAG 2.2) of `#rrggbb`. */
function luminance(colour: string): number {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => {
    const channel = Number.parseInt(colour.slice(at, at + 2), 16) / 255
    return channel <= 0.04045 ? channel / 12.92 : ((channel + 0.055) / 1.055) ** 2.4
  })
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}
