import assert from 'node:assert/strict'
import { test } from 'node:test'
import { networkList } from '../../src/http/client-address.ts'

const BLOCKS = [
  '192.0.2.0/24',
  '198.51.100.7',
  '10.0.0.0/9',
  '2001:db8:1::/48',
  '2001:db8::5',
  '::ffff:203.0.113.128/121',
]

test('an address is listed if it is in one of the networks, and no neighbour of them is', () => {
  const isListed = networkList(BLOCKS)
  const cases: [address: string, is: boolean][] = [
    ['192.0.2.0', true],
    ['192.0.2.255', true],
    ['192.0.1.255', false],
    ['192.0.3.0', false],
    ['198.51.100.7', true],
    ['198.51.100.6', false],
    ['10.127.255.255', true],
    ['10.128.0.0', false],
    ['2001:db8:1:ffff::1', true],
    ['2001:db8:2::', false],
    ['2001:db8::5', true],
    ['2001:db8:0:0:0:0:0:5', true],
    ['2001:db8::6', false],
    ['203.0.113.200', true],
    ['203.0.113.127', false],
    ['::c000:201', false],
    ['', false],
    ['host', false],
    ['192.0.2', false],
  ]
  for (const [address, is] of cases) assert.equal(isListed(address), is, address)
})

test('a network of length 0 has every address of its family, and an empty list has none', () => {
  const all = networkList(['0.0.0.0/0'])
  assert.deepEqual([all('203.0.113.9'), all('2001:db8::1')], [true, false])
  assert.equal(networkList(['::/0'])('2001:db8::1'), true)
  assert.equal(networkList([])('192.0.2.1'), false)
})
