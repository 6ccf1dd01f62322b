import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { isBindable, isPattern, matchesPattern } from '../../src/gate/patterns.ts'
import { parseRouteSpec } from '../../src/gate/route-spec.ts'
import { mutated } from '../support/arbitraries.ts'

describe('a path that can be bound', () => {
  for (const path of [
    '/',
    '/ping',
    '/a/b/',
    '/a.b/..c/...',
    '/a%20b/%C3%A9',
    '/a?x=../..//%2f%2e%00',
    '/a?',
    "/~!$&'()*+,;=:@-._",
    `/${'a'.repeat(2047)}`,
  ]) {
    test(`a path can be bound: ${path.slice(0, 40)}`, () => assert.equal(isBindable(path), true))
  }
  const rows: { path: string; note: string }[] = [
    { path: '', note: 'nothing' },
    { path: 'ping', note: 'no slash at the start' },
    { path: 'http://example.com/', note: 'a whole URL' },
    { path: '//example.com', note: 'another host, to a browser' },
    { path: '/a//b', note: 'an empty segment' },
    { path: '/a/./b', note: 'a dot segment' },
    { path: '/a/../b', note: 'a way up' },
    { path: '/..', note: 'a way up at the end' },
    { path: '/a/%2e%2E/b', note: 'an encoded way up' },
    { path: '/a/.%2e/b', note: 'half of it encoded' },
    { path: '/a%2fb', note: 'an encoded slash' },
    { path: '/a%252fb', note: 'a slash that was encoded twice' },
    { path: '/a%25252Eb', note: 'a dot that was encoded three times' },
    { path: '/a%5cb', note: 'an encoded backslash' },
    { path: '/a\\b', note: 'a backslash' },
    { path: '/a%00', note: 'an encoded control character' },
    { path: '/a%0d%0aX: y', note: 'a header' },
    { path: '/a%7f', note: 'an encoded delete' },
    { path: '/a\x00', note: 'a control character' },
    { path: '/a b', note: 'a space' },
    { path: '/é', note: 'what is not ASCII' },
    { path: '/a%', note: 'a percent sign alone' },
    { path: '/a%2', note: 'half an encoding' },
    { path: '/a%zz', note: 'no encoding' },
    { path: '/a?x=%', note: 'the same in the query' },
    { path: '/a#b', note: 'a fragment' },
    { path: '/a?b#c', note: 'a fragment after a query' },
    { path: '*', note: 'the target of OPTIONS' },
    { path: `/${'a'.repeat(2048)}`, note: 'too long' },
  ]
  for (const { path, note } of rows) {
    test(`a path cannot be bound with ${note}`, () => assert.equal(isBindable(path), false))
  }

  test('a path that can be bound is what a URL parser leaves as it is', () => {
    const texts = fc.oneof(
      fc.string({ unit: fc.constantFrom(...'/.%2eEfF5c0a?#\\ ') }).map((text) => `/${text}`),
      mutated('/render/cat.png?size=2&q=%20'),
    )
    fc.assert(
      fc.property(texts, (text) => {
        if (!isBindable(text)) return
        const [path] = text.split('?')
        assert.equal(new URL(`http://a.b${text}`).pathname, path)
        assert.equal(new URL(`http://a.b${text}`).host, 'a.b')
        assert.equal(new URL(text, 'http://a.b/x/y').pathname, path)
      }),
      { numRuns: 10_000 },
    )
  })
})

describe('a pattern', () => {
  const rows: { pattern: string; yes: string[]; no: string[] }[] = [
    { pattern: '/ping', yes: ['/ping', '/ping?x'], no: ['/ping/', '/pin', '/pingx', '/Ping', '/'] },
    { pattern: '/', yes: ['/', '/?a=b'], no: ['/a'] },
    {
      pattern: '/render/*',
      yes: ['/render/a', '/render/*', '/render/a%20b?c/d'],
      no: ['/render', '/render/', '/render/a/', '/render/a/b', '/x/render/a'],
    },
    { pattern: '/a/*/c', yes: ['/a/b/c'], no: ['/a/c', '/a/b/b/c', '/a/b/d'] },
    {
      pattern: '/files/**',
      yes: ['/files/', '/files/a', '/files/a/b/c', '/files/a/?q'],
      no: ['/files', '/filesx/a', '/'],
    },
    { pattern: '/**', yes: ['/', '/a', '/a/b'], no: [] },
    { pattern: '/*/**', yes: ['/a/', '/a/b/c'], no: ['/', '/a'] },
  ]
  for (const { pattern, yes, no } of rows) {
    test(`the pattern ${pattern} matches the paths that it should, and no others`, () => {
      assert.equal(isPattern(pattern), true)
      for (const path of yes) assert.equal(matchesPattern(pattern, path), true, path)
      for (const path of no) assert.equal(matchesPattern(pattern, path), false, path)
    })
  }

  test('a pattern has stars for whole segments only, and two of them at the end', () => {
    for (const pattern of [
      '/a*',
      '/*a',
      '/**/a',
      '/a/***',
      '/**/**',
      '/a?b',
      '/a//b',
      '/../a',
      '',
    ]) {
      assert.equal(isPattern(pattern), false, pattern)
    }
    const longest = `/${'a'.repeat(255)}`
    assert.deepEqual([isPattern(longest), isPattern(`${longest}a`)], [true, false])
  })
})

describe('a route as it is spelled', () => {
  test('a route reads id, method, path and price, with colons in the path', () => {
    assert.deepEqual(parseRouteSpec('a_b-1=PATCH:/v1/x:y/*:100000000'), {
      routeId: 'a_b-1',
      method: 'PATCH',
      pattern: '/v1/x:y/*',
      priceSats: 100_000_000,
    })
  })

  test('a route that cannot be is refused with a sentence that says which part is wrong', () => {
    const form =
      'a route reads `<id>=<method>:<path>:<sats>`, such as `render=POST:/render/*:50`; its id is 1 to 64 letters, digits, `-` and `_`'
    const method = 'the method of route a must be one of GET, POST, PUT, PATCH, DELETE'
    const path =
      'the path of route a must start with `/`, without query, dot segments, empty segments or encoded slashes; `*` stands for one segment, `**` at the end for the rest'
    const price = 'the price of route a must be whole satoshis, from 1 to 100000000'
    const REFUSED: Record<string, string[]> = {
      [form]: [
        '',
        'a',
        'GET:/a:1',
        '=GET:/x:1',
        'a b=GET:/a:1',
        'a=GET:/a',
        `${'a'.repeat(65)}=GET:/x:1`,
      ],
      [method]: ['a=:/x:1', 'a=get:/a:1', 'a=HEAD:/a:1'],
      [path]: ['a=GET::1', 'a=GET:a:1', 'a=GET:/a?b:1', 'a=GET:/a/../b:1'],
      [price]: ['', '0', '01', '1.5', '-1', '100000001', '1000000000'].map(
        (sats) => `a=GET:/a:${sats}`,
      ),
    }
    for (const [message, texts] of Object.entries(REFUSED)) {
      for (const text of texts) assert.throws(() => parseRouteSpec(text), { message }, text)
    }
    assert.equal(parseRouteSpec(`${'a'.repeat(64)}=GET:/x:1`).priceSats, 1)
  })
})
