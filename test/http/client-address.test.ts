import assert from 'node:assert/strict'
import type { IncomingMessage } from 'node:http'
import { test } from 'node:test'
import { clientNetwork, clientScope, createClientAddress } from '../../src/http/client-address.ts'

/** What a proxy at 10.0.0.1, which is trusted with its network, says in X-Forwarded-For, and the client. */
const BEHIND_A_PROXY: Record<string, [forwarded: string[] | undefined, client: string]> = {
  'a trusted proxy says nothing': [undefined, '10.0.0.1'],
  'a trusted proxy says who it is': [['198.51.100.1'], '198.51.100.1'],
  'the client wrote the left of the chain itself': [
    ['127.0.0.1, 10.9.9.9, 198.51.100.1'],
    '198.51.100.1',
  ],
  'two trusted proxies in a row': [['6.6.6.6, 198.51.100.1, 10.3.0.7, 10.0.0.2'], '198.51.100.1'],
  'an untrusted proxy between trusted ones is where belief ends': [
    ['198.51.100.1, 10.0.0.3, 203.0.113.9, 10.0.0.2'],
    '203.0.113.9',
  ],
  'the chain comes in several lines': [['6.6.6.6', '198.51.100.1', '10.0.0.2'], '198.51.100.1'],
  'every hop is trusted, so the first is the client': [
    ['10.0.0.4, 10.0.0.3, 10.0.0.2'],
    '10.0.0.4',
  ],
  'spaces around hops': [['  198.51.100.1  ,10.0.0.2\t'], '198.51.100.1'],
  'the next hop is malformed, so nothing beyond the peer is known': [
    ['198.51.100.1, unknown'],
    '10.0.0.1',
  ],
  'a hop behind trusted ones is malformed': [['198.51.100.1, nonsense, 10.0.0.2'], '10.0.0.2'],
  'an empty hop is malformed too': [['198.51.100.1,'], '10.0.0.1'],
  'an empty header': [[''], '10.0.0.1'],
  'an address with a port is none': [['198.51.100.1:443'], '10.0.0.1'],
  'an address in brackets is none': [['[2001:db8::1]'], '10.0.0.1'],
  'leading zeros make an address that two readers read differently': [
    ['010.000.000.001'],
    '10.0.0.1',
  ],
  'a number is no address': [['3325256705'], '10.0.0.1'],
  'a trusted hop may be written as IPv6': [['198.51.100.1, ::ffff:10.0.0.2'], '198.51.100.1'],
}
for (const [note, [forwarded, client]] of Object.entries(BEHIND_A_PROXY)) {
  test(`the client address behind a proxy is right: ${note}`, () => {
    const { clientAddress } = createClientAddress(['10.0.0.0/8'])
    assert.equal(clientAddress(aRequest('10.0.0.1', forwarded)), client)
  })
}

/** Whom the peer is taken for, by the blocks that are trusted, where it says that it forwards for 198.51.100.1. */
const PEERS: [note: string, trusted: string[], peer: string | undefined, client: string][] = [
  ['nobody is trusted, so nobody is believed', [], '203.0.113.1', '203.0.113.1'],
  ['a stranger claims to be a proxy', ['10.0.0.0/8'], '203.0.113.1', '203.0.113.1'],
  ['a single address is trusted', ['10.0.0.1'], '10.0.0.1', '198.51.100.1'],
  ['and its neighbour is not', ['10.0.0.1'], '10.0.0.2', '10.0.0.2'],
  ['IPv4 on an IPv6 socket is IPv4', [], '::ffff:203.0.113.1', '203.0.113.1'],
  ['so is IPv4 behind a translator to IPv6', [], '64:ff9b::cb00:7101', '203.0.113.1'],
  ['in any spelling', [], '64:FF9B:0:0:0:0:CB00:7101', '203.0.113.1'],
  ['with its numbers in decimal', [], '64:ff9b::203.0.113.1', '203.0.113.1'],
  [
    'a local translator may hold other addresses',
    [],
    '64:ff9b:1::cb00:7101',
    '64:ff9b:1::cb00:7101',
  ],
  [
    'an IPv4 proxy on an IPv6 socket is trusted by its IPv4 block',
    ['10.0.0.0/8'],
    '::FFFF:10.0.0.1',
    '198.51.100.1',
  ],
  ['an IPv6 block is trusted', ['2001:db8::/32'], '2001:db8:ffff::1', '198.51.100.1'],
  ['an IPv6 block ends where it ends', ['2001:db8::/32'], '2001:db9::1', '2001:db9::1'],
  [
    'a zone belongs to the machine, not to the client',
    ['fe80::/10'],
    'fe80::1%eth0',
    '198.51.100.1',
  ],
  ['the IPv6 loopback is not the IPv4 one', ['127.0.0.0/8'], '::1', '::1'],
  ['everybody is trusted, so the chain is', ['0.0.0.0/0', '::/0'], '203.0.113.1', '198.51.100.1'],
  ['a socket that is gone has no address', ['10.0.0.0/8'], undefined, ''],
]
for (const [note, trusted, peer, client] of PEERS) {
  test(`the client address is right: ${note}`, () => {
    const { clientAddress } = createClientAddress(trusted)
    assert.equal(clientAddress(aRequest(peer, ['198.51.100.1'])), client)
  })
}

test('a zone is left out of a hop, too', () => {
  const { clientAddress } = createClientAddress(['fe80::/10'])
  const chain = ['fe80::2%lo, 2001:db8::1%eth0']
  assert.equal(clientAddress(aRequest('fe80::1%eth0', chain)), '2001:db8::1')
})

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

type Exact = [note: string, peer: string, forwarded: string | undefined, client: string | null]

/** Who opens an order, by the proxies that are trusted. */
const EXACT: Record<string, Exact[]> = {
  '': [
    ['a peer that forwards for nobody', '203.0.113.7', undefined, '203.0.113.7'],
    ['a peer in its /64', '2001:db8::7', undefined, '2001:db8:0:0'],
    ['nobody, where a peer forwards that is not trusted', '203.0.113.7', '198.51.100.1', null],
    ['nobody, where it forwards for nobody', '203.0.113.7', '', null],
  ],
  '192.0.2.1': [['nobody, where a private peer forwards', '10.0.0.1', '198.51.100.1', null]],
  '10.0.0.1': [
    [
      'the hop before our proxy, also of a carrier',
      '10.0.0.1',
      '198.51.100.1, 100.64.0.9',
      '100.64.0.9',
    ],
    [
      'the right-most address before our proxy',
      '10.0.0.1',
      '198.51.100.1, 203.0.113.9',
      '203.0.113.9',
    ],
  ],
  '10.0.0.0/8': [
    ['the one that a trusted proxy names', '10.0.0.1', '198.51.100.1', '198.51.100.1'],
    ['the one that a row of them names', '10.0.0.1', '198.51.100.1, 10.0.0.2', '198.51.100.1'],
    ['a trusted peer itself, where it forwards for nobody', '10.0.0.1', undefined, '10.0.0.1'],
    ['nobody, where a trusted proxy names no address', '10.0.0.1', 'unknown', null],
    ['a trusted address, where a trusted proxy names it', '10.0.0.1', '10.0.0.1', '10.0.0.1'],
  ],
}
for (const [trusted, rows] of Object.entries(EXACT)) {
  for (const [note, peer, forwarded, client] of rows) {
    test(`the client who opens an order is ${note}`, () => {
      const { openingClient } = createClientAddress(trusted === '' ? [] : [trusted])
      const request = aRequest(peer, forwarded === undefined ? undefined : [forwarded])
      assert.equal(openingClient(request), client)
    })
  }
}

for (const name of ['forwarded', 'x-real-ip', 'cf-connecting-ip']) {
  test(`the client who opens an order is nobody, where ${name} alone names it, whoever is trusted`, () => {
    for (const trusted of [[], ['203.0.113.7']]) {
      const { openingClient } = createClientAddress(trusted)
      const request = aRequest('203.0.113.7', undefined, { [name]: 'for=198.51.100.1' })
      assert.equal(openingClient(request), null)
    }
  })
}

test('the client who opens an order behind the end of TLS is known where a proxy is trusted', () => {
  const opening = (trusted: string[], forwarded?: string[]) =>
    createClientAddress(trusted, true).openingClient(aRequest('127.0.0.1', forwarded))
  assert.equal(opening([]), null)
  assert.equal(opening(['127.0.0.1']), '127.0.0.1')
  assert.equal(opening(['192.0.2.1']), '127.0.0.1')
  assert.equal(opening(['127.0.0.1'], ['2001:db8::7']), '2001:db8:0:0')
})

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
