import assert from 'node:assert/strict'
import type { IncomingMessage } from 'node:http'
import { test } from 'node:test'
import {
  addressList,
  clientNetwork,
  clientScope,
  createClientAddress,
} from '../../src/http/client-address.ts'

type Case = {
  note: string
  trusted: string[]
  peer: string | undefined
  /** The lines of X-Forwarded-For, as they arrive. */
  forwarded?: string[]
  client: string
}

const cases: Case[] = [
  {
    note: 'nobody is trusted, so nobody is believed',
    trusted: [],
    peer: '203.0.113.1',
    forwarded: ['198.51.100.1'],
    client: '203.0.113.1',
  },
  {
    note: 'a stranger claims to be a proxy',
    trusted: ['10.0.0.0/8'],
    peer: '203.0.113.1',
    forwarded: ['198.51.100.1'],
    client: '203.0.113.1',
  },
  {
    note: 'a trusted proxy says nothing',
    trusted: ['10.0.0.0/8'],
    peer: '10.0.0.1',
    client: '10.0.0.1',
  },
  {
    note: 'a trusted proxy says who it is',
    trusted: ['10.0.0.0/8'],
    peer: '10.0.0.1',
    forwarded: ['198.51.100.1'],
    client: '198.51.100.1',
  },
  {
    note: 'a single address is trusted, and its neighbour is not',
    trusted: ['10.0.0.1'],
    peer: '10.0.0.2',
    forwarded: ['198.51.100.1'],
    client: '10.0.0.2',
  },
  {
    note: 'the client wrote the left of the chain itself',
    trusted: ['10.0.0.0/8'],
    peer: '10.0.0.1',
    forwarded: ['127.0.0.1, 10.9.9.9, 198.51.100.1'],
    client: '198.51.100.1',
  },
  {
    note: 'two trusted proxies in a row',
    trusted: ['10.0.0.0/8', '192.0.2.7'],
    peer: '10.0.0.1',
    forwarded: ['6.6.6.6, 198.51.100.1, 192.0.2.7, 10.0.0.2'],
    client: '198.51.100.1',
  },
  {
    note: 'an untrusted proxy between trusted ones is where belief ends',
    trusted: ['10.0.0.0/8'],
    peer: '10.0.0.1',
    forwarded: ['198.51.100.1, 10.0.0.3, 203.0.113.9, 10.0.0.2'],
    client: '203.0.113.9',
  },
  {
    note: 'the chain comes in several lines',
    trusted: ['10.0.0.0/8'],
    peer: '10.0.0.1',
    forwarded: ['6.6.6.6', '198.51.100.1', '10.0.0.2'],
    client: '198.51.100.1',
  },
  {
    note: 'every hop is trusted, so the first is the client',
    trusted: ['10.0.0.0/8'],
    peer: '10.0.0.1',
    forwarded: ['10.0.0.4, 10.0.0.3, 10.0.0.2'],
    client: '10.0.0.4',
  },
  {
    note: 'spaces around hops',
    trusted: ['10.0.0.0/8'],
    peer: '10.0.0.1',
    forwarded: ['  198.51.100.1  ,10.0.0.2\t'],
    client: '198.51.100.1',
  },
  {
    note: 'the next hop is malformed, so nothing beyond the peer is known',
    trusted: ['10.0.0.0/8'],
    peer: '10.0.0.1',
    forwarded: ['198.51.100.1, unknown'],
    client: '10.0.0.1',
  },
  {
    note: 'a hop behind trusted ones is malformed',
    trusted: ['10.0.0.0/8'],
    peer: '10.0.0.1',
    forwarded: ['198.51.100.1, nonsense, 10.0.0.2'],
    client: '10.0.0.2',
  },
  {
    note: 'an empty hop is malformed too',
    trusted: ['10.0.0.0/8'],
    peer: '10.0.0.1',
    forwarded: ['198.51.100.1,'],
    client: '10.0.0.1',
  },
  {
    note: 'an empty header',
    trusted: ['10.0.0.0/8'],
    peer: '10.0.0.1',
    forwarded: [''],
    client: '10.0.0.1',
  },
  {
    note: 'an address with a port is none',
    trusted: ['10.0.0.0/8'],
    peer: '10.0.0.1',
    forwarded: ['198.51.100.1:443'],
    client: '10.0.0.1',
  },
  {
    note: 'an address in brackets is none',
    trusted: ['10.0.0.0/8'],
    peer: '10.0.0.1',
    forwarded: ['[2001:db8::1]'],
    client: '10.0.0.1',
  },
  {
    note: 'leading zeros make an address that two readers read differently',
    trusted: ['10.0.0.0/8'],
    peer: '10.0.0.1',
    forwarded: ['010.000.000.001'],
    client: '10.0.0.1',
  },
  {
    note: 'a number is no address',
    trusted: ['10.0.0.0/8'],
    peer: '10.0.0.1',
    forwarded: ['3325256705'],
    client: '10.0.0.1',
  },
  {
    note: 'IPv4 on an IPv6 socket is IPv4',
    trusted: [],
    peer: '::ffff:203.0.113.1',
    client: '203.0.113.1',
  },
  ...['64:ff9b::cb00:7101', '64:FF9B:0:0:0:0:CB00:7101', '64:ff9b::203.0.113.1'].map((peer) => ({
    note: `IPv4 behind a translator to IPv6 is IPv4: ${peer}`,
    trusted: [],
    peer,
    client: '203.0.113.1',
  })),
  {
    note: 'a local translator may hold other addresses in its prefix',
    trusted: [],
    peer: '64:ff9b:1::cb00:7101',
    client: '64:ff9b:1::cb00:7101',
  },
  {
    note: 'an IPv4 proxy on an IPv6 socket is trusted by its IPv4 block',
    trusted: ['10.0.0.0/8'],
    peer: '::FFFF:10.0.0.1',
    forwarded: ['::ffff:198.51.100.1'],
    client: '198.51.100.1',
  },
  {
    note: 'a trusted hop may be written as IPv6',
    trusted: ['10.0.0.0/8'],
    peer: '10.0.0.1',
    forwarded: ['198.51.100.1, ::ffff:10.0.0.2'],
    client: '198.51.100.1',
  },
  {
    note: 'an IPv6 block is trusted',
    trusted: ['2001:db8::/32'],
    peer: '2001:db8:ffff::1',
    forwarded: ['198.51.100.1, 2001:db8::2'],
    client: '198.51.100.1',
  },
  {
    note: 'an IPv6 block ends where it ends',
    trusted: ['2001:db8::/32'],
    peer: '2001:db9::1',
    forwarded: ['198.51.100.1'],
    client: '2001:db9::1',
  },
  {
    note: 'a zone belongs to the machine, not to the client',
    trusted: ['fe80::/10'],
    peer: 'fe80::1%eth0',
    forwarded: ['fe80::2%lo, 2001:db8::1%eth0'],
    client: '2001:db8::1',
  },
  {
    note: 'the IPv6 loopback is not the IPv4 one',
    trusted: ['127.0.0.0/8'],
    peer: '::1',
    forwarded: ['198.51.100.1'],
    client: '::1',
  },
  {
    note: 'everybody is trusted, so the first of the chain is the client',
    trusted: ['0.0.0.0/0', '::/0'],
    peer: '203.0.113.1',
    forwarded: ['198.51.100.1, 2001:db8::1'],
    client: '198.51.100.1',
  },
  {
    note: 'a socket that is gone has no address',
    trusted: ['10.0.0.0/8'],
    peer: undefined,
    forwarded: ['198.51.100.1'],
    client: '',
  },
]

for (const { note, trusted, peer, forwarded, client } of cases) {
  test(`the client address is right: ${note}`, () => {
    const { clientAddress } = createClientAddress(trusted)
    assert.equal(clientAddress(aRequest(peer, forwarded)), client)
  })
}

test('only the right end of an endless chain is read', () => {
  const { clientAddress } = createClientAddress(['10.0.0.0/8'])
  const chain = (hops: number): string[] => [
    '198.51.100.1',
    ...Array.from({ length: hops }, (_, i) => `10.0.1.${i}`),
  ]
  assert.equal(clientAddress(aRequest('10.0.0.1', [chain(31).join()])), '198.51.100.1')
  assert.equal(clientAddress(aRequest('10.0.0.1', [chain(32).join()])), '10.0.1.0')
  assert.equal(clientAddress(aRequest('10.0.0.1', chain(250))), '10.0.1.218')
})

test('a request is proxied when its peer is a trusted proxy, whatever it says', () => {
  const { isProxied } = createClientAddress(['10.0.0.0/8', '2001:db8::/32'])
  assert.equal(isProxied(aRequest('10.1.2.3')), true)
  assert.equal(isProxied(aRequest('::ffff:10.1.2.3')), true)
  assert.equal(isProxied(aRequest('2001:db8::1')), true)
  assert.equal(isProxied(aRequest('11.1.2.3', ['10.1.2.3'])), false)
  assert.equal(isProxied(aRequest(undefined)), false)
  assert.equal(createClientAddress([]).isProxied(aRequest('10.1.2.3')), false)
})

test('a client is one IPv4 address, or one /64 however it is spelled', () => {
  const same = [
    '2001:db8:0:1::',
    '2001:db8:0:1::1',
    '2001:DB8:0:1:ffff:ffff:ffff:ffff',
    '2001:0db8:0000:0001:0:0:0:1',
    '2001:db8::1:0:0:0:1',
    '2001:db8:0:1::192.0.2.1',
  ]
  assert.deepEqual(new Set(same.map(clientScope)), new Set(['2001:db8:0:1']))
  for (const [address, scope] of [
    ['203.0.113.1', '203.0.113.1'],
    ['203.0.113.10', '203.0.113.10'],
    ['2001:db8:0:2::1', '2001:db8:0:2'],
    ['2001:db8::1', '2001:db8:0:0'],
    ['::1', '0:0:0:0'],
    ['::', '0:0:0:0'],
    ['1::', '1:0:0:0'],
    ['1:2:3:4:5:6:7::', '1:2:3:4'],
    ['::2:3:4:5:6:7:8', '0:2:3:4'],
    ['', ''],
  ] as const) {
    assert.equal(clientScope(address), scope, address)
  }
})

test('limits are shared by a /24 of IPv4 and a /48 of IPv6', () => {
  for (const [address, network] of [
    ['203.0.113.1', '203.0.113'],
    ['203.0.113.255', '203.0.113'],
    ['203.0.114.1', '203.0.114'],
    ['2001:db8:1::1', '2001:db8:1'],
    ['2001:0DB8:0001:ffff::1', '2001:db8:1'],
    ['2001:db8:2::1', '2001:db8:2'],
    ['2001:db8::', '2001:db8:0'],
    ['::1', '0:0:0'],
  ] as const) {
    assert.equal(clientNetwork(address), network, address)
  }
})

test('a list of blocks knows its members in both families, and no text that is not an address', () => {
  const isListed = addressList(['192.0.2.0/24', '198.51.100.7', '2001:db8::/32', '::1/128'])
  for (const address of ['192.0.2.0', '192.0.2.255', '198.51.100.7', '2001:db8::1', '::1']) {
    assert.equal(isListed(address), true, address)
  }
  for (const address of ['192.0.3.0', '198.51.100.8', '2001:db9::', '::2', '', 'x', '192.0.2']) {
    assert.equal(isListed(address), false, address)
  }
  assert.equal(addressList([])('127.0.0.1'), false)
})

type ExactCase = {
  note: string
  trusted?: string[]
  isBehindTls?: boolean
  peer: string
  headers?: Record<string, string>
  client: string | null
}

const EXACT: ExactCase[] = [
  { note: 'a peer that forwards for nobody', peer: '203.0.113.7', client: '203.0.113.7' },
  { note: 'a peer in its /64', peer: '2001:db8::7', client: '2001:db8:0:0' },
  ...[
    { 'x-forwarded-for': '198.51.100.1' },
    { forwarded: 'for=198.51.100.1' },
    { 'x-real-ip': '198.51.100.1' },
    { 'cf-connecting-ip': '198.51.100.1' },
    { 'x-forwarded-for': '' },
  ].map((headers) => ({
    note: `nobody, where none is trusted and ${Object.keys(headers)} arrives`,
    peer: '203.0.113.7',
    headers: { ...headers },
    client: null,
  })),
  {
    note: 'nobody, where a private peer forwards',
    trusted: ['192.0.2.1'],
    peer: '10.0.0.1',
    headers: { 'x-forwarded-for': '198.51.100.1' },
    client: null,
  },
  {
    note: 'the hop before our proxy, also where it is of a carrier or a tailnet and forwards',
    trusted: ['10.0.0.1'],
    peer: '10.0.0.1',
    headers: { 'x-forwarded-for': '198.51.100.1, 100.64.0.9' },
    client: '100.64.0.9',
  },
  {
    note: 'the right-most address, where a network of proxies is not trusted and forwards to ours',
    trusted: ['10.0.0.1'],
    peer: '10.0.0.1',
    headers: { 'x-forwarded-for': '198.51.100.1, 203.0.113.9' },
    client: '203.0.113.9',
  },
  {
    note: 'the one that a trusted proxy names',
    trusted: ['10.0.0.0/8'],
    peer: '10.0.0.1',
    headers: { 'x-forwarded-for': '198.51.100.1' },
    client: '198.51.100.1',
  },
  {
    note: 'the one that a row of trusted proxies names',
    trusted: ['10.0.0.0/8'],
    peer: '10.0.0.1',
    headers: { 'x-forwarded-for': '198.51.100.1, 10.0.0.2' },
    client: '198.51.100.1',
  },
  {
    note: 'the trusted proxy itself, where it names none',
    trusted: ['10.0.0.0/8'],
    peer: '10.0.0.1',
    client: '10.0.0.1',
  },
  {
    note: 'the trusted proxy itself, where it names what is no address',
    trusted: ['10.0.0.0/8'],
    peer: '10.0.0.1',
    headers: { 'x-forwarded-for': 'unknown' },
    client: '10.0.0.1',
  },
  {
    note: 'nobody, where something in front ends TLS and none is trusted',
    isBehindTls: true,
    peer: '127.0.0.1',
    client: null,
  },
  {
    note: 'the one that a trusted proxy names, where it ends TLS',
    trusted: ['127.0.0.1'],
    isBehindTls: true,
    peer: '127.0.0.1',
    headers: { 'x-forwarded-for': '2001:db8::7' },
    client: '2001:db8:0:0',
  },
]

for (const { note, trusted = [], isBehindTls, peer, headers = {}, client } of EXACT) {
  test(`the client who opens an order is ${note}`, () => {
    const { openingClient } = createClientAddress(trusted, isBehindTls)
    const { 'x-forwarded-for': chain, ...others } = headers
    const request = aRequest(peer, chain === undefined ? undefined : [chain], others)
    assert.equal(openingClient(request), client)
  })
}

/** No more of a request than is looked at. */
function aRequest(
  peer: string | undefined,
  forwarded?: string[],
  others: Record<string, string> = {},
): IncomingMessage {
  const headers = { ...others, ...(forwarded ? { 'x-forwarded-for': forwarded.join() } : {}) }
  return {
    socket: { remoteAddress: peer },
    headers,
    headersDistinct: forwarded ? { 'x-forwarded-for': forwarded } : {},
  } as unknown as IncomingMessage
}
