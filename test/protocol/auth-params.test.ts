import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import {
  authScheme,
  type Challenge,
  MAX_CHALLENGES,
  MAX_FIELD_CHARS,
  MAX_PARAMS,
  parseChallenges,
  parseCredentials,
  serialiseChallenge,
} from '../../src/protocol/auth-params.ts'
import { fieldLines, mutated } from '../support/arbitraries.ts'

const withParams = (scheme: string, params: Record<string, string> = {}): Challenge => ({
  scheme,
  params: new Map(Object.entries(params)),
})

describe('parseChallenges', () => {
  const rows: { note: string; lines: string[]; challenges: Challenge[] | null }[] = [
    { note: 'no field line', lines: [], challenges: [] },
    { note: 'an empty list', lines: [' , ,\t'], challenges: [] },
    { note: 'a scheme alone', lines: ['Negotiate'], challenges: [withParams('negotiate')] },
    {
      note: 'a token68',
      lines: ['Negotiate a87421000492aa8=='],
      challenges: [{ scheme: 'negotiate', token68: 'a87421000492aa8==' }],
    },
    {
      note: 'a name and an equals sign without a value is a token68',
      lines: ['X a='],
      challenges: [{ scheme: 'x', token68: 'a=' }],
    },
    {
      note: 'a name, an equals sign and a value is a parameter',
      lines: ['X a=b'],
      challenges: [withParams('x', { a: 'b' })],
    },
    {
      note: 'the list of RFC 9110 §11.6.1',
      lines: ['Basic realm="simple", Newauth realm="apps", type=1, title="Login to \\"apps\\""'],
      challenges: [
        withParams('basic', { realm: 'simple' }),
        withParams('newauth', { realm: 'apps', type: '1', title: 'Login to "apps"' }),
      ],
    },
    {
      note: 'several field lines are one list',
      lines: ['L402 macaroon="M", invoice="I"', 'Payment id="x"'],
      challenges: [
        withParams('l402', { macaroon: 'M', invoice: 'I' }),
        withParams('payment', { id: 'x' }),
      ],
    },
    {
      note: 'a parameter may stand on the next line, as lists do',
      lines: ['Payment id="x"', 'realm="y"'],
      challenges: [withParams('payment', { id: 'x', realm: 'y' })],
    },
    {
      note: 'a scheme alone between others',
      lines: ['A a=b, Negotiate, C c=d'],
      challenges: [
        withParams('a', { a: 'b' }),
        withParams('negotiate'),
        withParams('c', { c: 'd' }),
      ],
    },
    {
      note: 'bad whitespace around the equals sign',
      lines: ['A a = b ,\tc\t=\t"d"'],
      challenges: [withParams('a', { a: 'b', c: 'd' })],
    },
    {
      note: 'empty list elements, also before the first parameter',
      lines: [',, A ,, a=b ,, B ,'],
      challenges: [withParams('a', { a: 'b' }), withParams('b')],
    },
    {
      note: 'a comma, an equals sign and a scheme inside a quoted string',
      lines: ['A a="x, B b=c", d=""'],
      challenges: [withParams('a', { a: 'x, B b=c', d: '' })],
    },
    {
      note: 'quoted pairs of characters that need none',
      lines: ['A a="\\\\\\a\\ "'],
      challenges: [withParams('a', { a: '\\a ' })],
    },
    {
      note: 'Latin-1 inside a quoted string',
      lines: ['A a="\xe9"'],
      challenges: [withParams('a', { a: '\xe9' })],
    },
    {
      note: 'schemes and names compare without regard to case, values do not',
      lines: ['PayMent ID=Ab'],
      challenges: [withParams('payment', { id: 'Ab' })],
    },
    {
      note: 'a name that every object has',
      lines: ['A __proto__=b, constructor=c'],
      challenges: [
        {
          scheme: 'a',
          params: new Map([
            ['__proto__', 'b'],
            ['constructor', 'c'],
          ]),
        },
      ],
    },
    { note: 'a parameter without a scheme', lines: ['a=b'], challenges: null },
    { note: 'a parameter after a token68', lines: ['A b, c=d'], challenges: null },
    { note: 'a parameter twice', lines: ['A a=b, a=c'], challenges: null },
    { note: 'a parameter twice, in another case', lines: ['A a=b, A=c'], challenges: null },
    { note: 'parameters without a comma', lines: ['L402 version="0" token="M"'], challenges: null },
    { note: 'an open quoted string', lines: ['A a="b'], challenges: null },
    { note: 'a quoted string that ends in an escape', lines: ['A a="b\\"'], challenges: null },
    {
      note: 'an open string that swallows the next line',
      lines: ['A a="b', 'B c="d"'],
      challenges: null,
    },
    { note: 'a single-quoted string with a space', lines: ["A a='b c'"], challenges: null },
    { note: 'text behind a quoted string', lines: ['A a="b"c'], challenges: null },
    { note: 'two token68s', lines: ['A b c'], challenges: null },
    { note: 'an equals sign inside a token68', lines: ['A b=c='], challenges: null },
    { note: 'a line break', lines: ['A a="b\r\nc"'], challenges: null },
    { note: 'a NUL', lines: ['A a="\0"'], challenges: null },
    { note: 'beyond Latin-1', lines: ['A a="€"'], challenges: null },
    {
      note: 'too many challenges',
      lines: Array<string>(MAX_CHALLENGES + 1).fill('A'),
      challenges: null,
    },
    {
      note: 'as many parameters as there may be, and one',
      lines: [`A ${Array.from({ length: MAX_PARAMS + 1 }, (_, i) => `p${i}=x`).join()}`],
      challenges: null,
    },
    {
      note: 'as long as it may be',
      lines: [`A ${'b'.repeat(MAX_FIELD_CHARS - 2)}`],
      challenges: [{ scheme: 'a', token68: 'b'.repeat(MAX_FIELD_CHARS - 2) }],
    },
    { note: 'too long', lines: [`A ${'b'.repeat(MAX_FIELD_CHARS - 1)}`], challenges: null },
  ]
  for (const { note, lines, challenges } of rows) {
    test(`parseChallenges ${challenges === null ? 'refuses' : 'reads'} its field: ${note}`, () =>
      assert.deepEqual(parseChallenges(lines), challenges))
  }
})

describe('parseCredentials', () => {
  const rows: { note: string; line: string; credentials: Challenge | null }[] = [
    {
      note: 'a token68',
      line: ' Bearer  abc.def-_~+/== ',
      credentials: { scheme: 'bearer', token68: 'abc.def-_~+/==' },
    },
    {
      note: 'parameters',
      line: 'Digest username="Mufasa", uri="/"',
      credentials: withParams('digest', { username: 'Mufasa', uri: '/' }),
    },
    { note: 'the scheme alone', line: 'Payment', credentials: withParams('payment') },
    { note: 'two credentials', line: 'A a=b, B c=d', credentials: null },
    { note: 'a stray comma behind a token68', line: 'A b,', credentials: null },
    { note: 'a stray comma before a token68', line: ', A b', credentials: null },
    { note: 'a colon is in no token68', line: 'L402 abc:def', credentials: null },
    { note: 'nothing', line: '', credentials: null },
    {
      note: 'as long as it may be',
      line: `A ${'b'.repeat(MAX_FIELD_CHARS - 2)}`,
      credentials: { scheme: 'a', token68: 'b'.repeat(MAX_FIELD_CHARS - 2) },
    },
    { note: 'too long', line: `A ${'b'.repeat(MAX_FIELD_CHARS - 1)}`, credentials: null },
  ]
  for (const { note, line, credentials } of rows) {
    test(`parseCredentials ${credentials === null ? 'refuses' : 'reads'} its field: ${note}`, () =>
      assert.deepEqual(parseCredentials(line), credentials))
  }
})

describe('authScheme', () => {
  const rows: [string, string | null][] = [
    ['Payment abc', 'payment'],
    [' L402\tabc', 'l402'],
    ['LSAT', 'lsat'],
    ['L402,abc', null],
    ['', null],
    ['"x" y', null],
  ]
  for (const [line, scheme] of rows) {
    test(`authScheme finds ${scheme ?? 'no scheme'} in ${JSON.stringify(line)}`, () =>
      assert.equal(authScheme(line), scheme))
  }
})

describe('serialiseChallenge', () => {
  test('serialiseChallenge writes quoted strings in the given order and leaves out what is undefined', () => {
    assert.equal(
      serialiseChallenge('L402', { macaroon: 'M==', version: undefined, invoice: 'ln bc' }),
      'L402 macaroon="M==", invoice="ln bc"',
    )
  })
  for (const value of ['"', '\\', '\t', '\n', '\x7f', '\xe9', '€']) {
    test(`serialiseChallenge refuses ${JSON.stringify(value)} in a value, without quoting it`, () => {
      assert.throws(() => serialiseChallenge('A', { a: `x${value}` }), {
        name: 'TypeError',
        message: 'auth-param a would need an escape',
      })
    })
  }
  test('serialiseChallenge refuses a name that a client would read otherwise', () => {
    assert.throws(() => serialiseChallenge('A', { 'x-foo': 'b' }), TypeError)
    assert.throws(() => serialiseChallenge('A', { Foo: 'b' }), TypeError)
    assert.throws(() => serialiseChallenge('A B', { foo: 'b' }), TypeError)
  })
})

describe('any field lines', () => {
  test('any field lines are parsed or refused, whatever they hold', () => {
    fc.assert(
      fc.property(fieldLines, (lines) => {
        const challenges = parseChallenges(lines)
        assert.ok(challenges === null || challenges.length <= MAX_CHALLENGES)
        for (const line of lines) {
          parseCredentials(line)
          authScheme(line)
        }
      }),
      { numRuns: 10_000 },
    )
  })

  test('any field lines mean the same joined by a comma, as fetch hands them over', () => {
    fc.assert(
      fc.property(fieldLines, (lines) => {
        assert.deepEqual(parseChallenges([lines.join(', ')]), parseChallenges(lines))
      }),
      { numRuns: 10_000 },
    )
  })

  test('any field lines with one good challenge changed somewhere are parsed or refused', () => {
    const good = 'Basic realm="a \\" b", L402 macaroon="AgJC+/==", invoice="lnbc1", X abc=='
    fc.assert(
      fc.property(mutated(good), (line) => {
        parseChallenges([line])
        parseCredentials(line)
      }),
      { numRuns: 10_000 },
    )
  })

  test('any field lines that we write are read back', () => {
    const value = fc.string({ unit: fc.constantFrom(...'aZ09 ,=;:/+|{}') })
    const name = fc.stringMatching(/^[a-z0-9_]{1,8}$/)
    fc.assert(
      fc.property(
        fc.uniqueArray(fc.tuple(name, value), { selector: ([n]) => n, minLength: 1 }),
        (params) => {
          const line = serialiseChallenge('Payment', Object.fromEntries(params))
          assert.deepEqual(parseChallenges([line]), [
            { scheme: 'payment', params: new Map(Object.entries(Object.fromEntries(params))) },
          ])
        },
      ),
      { numRuns: 10_000 },
    )
  })
})

test('a hostile field of full length costs no noticeable time', () => {
  const hostile = [
    `A ${'a'.repeat(MAX_FIELD_CHARS - 2)}`,
    `A a="${'\\a'.repeat(MAX_FIELD_CHARS / 2 - 4)}`,
    `A a=${' '.repeat(MAX_FIELD_CHARS - 5)}`,
    `A${' '.repeat(MAX_FIELD_CHARS - 3)}"`,
    `A ${'a '.repeat(MAX_FIELD_CHARS / 2 - 2)}`,
    `A ${','.repeat(MAX_FIELD_CHARS - 3)}"`,
    `${' '.repeat(MAX_FIELD_CHARS - 1)}"`,
  ]
  for (const line of hostile) {
    const before = process.cpuUsage()
    parseChallenges([line])
    parseCredentials(line)
    authScheme(line)
    const { user, system } = process.cpuUsage(before)
    // Quadratic work on 64 KiB would take seconds.
    assert.ok(user + system < 500_000, line.slice(0, 8))
  }
})
