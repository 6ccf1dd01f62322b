import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { parseStrictJsonBytes } from '../../src/lib/json.ts'
import { mutated } from '../support/arbitraries.ts'

const bytes = (text: string) => new TextEncoder().encode(text)

/** Members in order, where JSON's own objects would drop the repeated ones. */
type Tree = { members: [name: string, value: Tree][] } | { items: Tree[] } | { text: string }

/** Without a backslash: after one as a name, JSON.parse of V8 13.6 reads other escaped names as a backslash, too. */
const name = fc.constantFrom('a', 'b', '', '"', '{', '__proto__', 'é', '\u2028', 'planId')
const { tree } = fc.letrec<{ tree: Tree }>((tie) => ({
  tree: fc.oneof(
    { maxDepth: 4 },
    fc.record({ text: fc.constantFrom('1', '-0.5e3', 'true', 'null', '"{\\"a\\":1,"', '"\\\\"') }),
    fc.record({ items: fc.array(tie('tree'), { maxLength: 3 }) }),
    fc.record({ members: fc.array(fc.tuple(name, tie('tree')), { maxLength: 4 }) }),
  ),
}))

function repeats(node: Tree): boolean {
  if ('text' in node) return false
  if ('items' in node) return node.items.some(repeats)
  const names = node.members.map(([each]) => each)
  return new Set(names).size < names.length || node.members.some(([, value]) => repeats(value))
}

/** The text of a tree, with every second name escaped to the last character. */
function written(node: Tree, isEscaped = false): string {
  if ('text' in node) return node.text
  if ('items' in node) return `[ ${node.items.map((item) => written(item)).join(' , ')} ]`
  const members = node.members.map(([each, value], i) => {
    const quoted = (i % 2 === 1) === isEscaped ? JSON.stringify(each) : `"${escaped(each)}"`
    return `${quoted} : ${written(value, !isEscaped)}`
  })
  return `{ ${members.join(',')} }`
}

const escaped = (text: string): string =>
  [...text].map((sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`).join('')

test('JSON with a member twice is refused at any depth and in any spelling, and all other JSON is read', () => {
  fc.assert(
    fc.property(tree, (some) => {
      const text = written(some)
      const value = parseStrictJsonBytes(bytes(text))
      assert.deepEqual(value, repeats(some) ? undefined : JSON.parse(text), text)
    }),
    { numRuns: 2_000 },
  )
})

test('no bytes make the reader of strict JSON throw or hang', () => {
  const good = '{"planId":"spark","a":[{"b":"\\u0061\\""},1.5e3,null]}'
  fc.assert(
    fc.property(fc.oneof(fc.string({ unit: 'binary' }), mutated(good)), (text) => {
      parseStrictJsonBytes(bytes(text))
    }),
    { numRuns: 2_000 },
  )
  for (const deep of ['['.repeat(16_000), '{"a":'.repeat(3_000), `"${'\\'.repeat(16_001)}`]) {
    assert.equal(parseStrictJsonBytes(bytes(deep)), undefined)
  }
})

test('JSON with more than 2000 signs or 32 levels is no message, and what stands in a string counts for nothing', () => {
  const isRead = (text: string) => parseStrictJsonBytes(bytes(text)) !== undefined
  assert.ok(isRead(`[${'1,'.repeat(1_997)}1]`.replace('1', '"{},[]:\\"{}"')))
  assert.ok(!isRead(`[${'1,'.repeat(1_999)}1]`))
  assert.ok(!isRead(`[${'{},'.repeat(700)}{}]`))
  assert.ok(isRead('['.repeat(32) + ']'.repeat(32)))
  assert.ok(!isRead('['.repeat(33) + ']'.repeat(33)))
  assert.ok(!isRead(`{"a\\\\":${'['.repeat(32)}${']'.repeat(32)}}`))
  assert.ok(isRead(`{"a":"${'['.repeat(100)}\\"${'{'.repeat(100)}"}`))
})
