import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isVisitorNetwork, visitorNetwork } from '../../src/protocol/ip-address.ts'

test('a visitor is known by the /24 or /48 of the address, in one spelling', () => {
  for (const [address, network] of [
    ['203.0.113.7', '203.0.113.0/24'],
    ['0.0.0.0', '0.0.0.0/24'],
    ['::ffff:203.0.113.7', '203.0.113.0/24'],
    ['::203.0.113.7', '203.0.113.0/24'],
    ['2001:db8:1:2::3', '2001:db8:1::/48'],
    ['2001:0DB8:0001::', '2001:db8:1::/48'],
    ['2001:db8::1', '2001:db8:0::/48'],
    ['::1', '0:0:0::/48'],
  ] as const) {
    assert.equal(visitorNetwork(address), network)
    assert.ok(isVisitorNetwork(network))
  }
})

test('a text that is not an address has no network', () => {
  for (const text of [
    '',
    'x',
    '1.2.3',
    '1.2.3.256',
    '01.2.3.4',
    'fe80::1%eth0',
    '1.2.3.0/24',
    '::1::',
  ]) {
    assert.equal(visitorNetwork(text), null, text)
  }
})

test('a network is accepted in that one spelling alone', () => {
  for (const text of [
    '203.0.113.7',
    '203.0.113.7/24',
    '203.0.113.0/16',
    '203.0.113.0/24 ',
    '2001:DB8:1::/48',
    '2001:db8:1::/64',
    '2001:db8:1:2::/48',
    'x/24',
    '/24',
    '1'.repeat(10_000),
  ]) {
    assert.equal(isVisitorNetwork(text), false, text.slice(0, 40))
  }
})
