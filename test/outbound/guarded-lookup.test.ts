import assert from 'node:assert/strict'
import type { LookupAddress } from 'node:dns'
import { connect, type LookupFunction } from 'node:net'
import { test } from 'node:test'
import { guardedLookup, type Resolve } from '../../src/outbound/guarded-lookup.ts'
import vectors from '../vectors/lnurl.json' with { type: 'json' }

const PUBLIC = { address: '93.184.216.34', family: 4 }
const PUBLIC_6 = { address: '2606:4700:4700::1111', family: 6 }
const LOOPBACK = { address: '127.0.0.1', family: 4 }

test('the guarded lookup gives a socket the public addresses of a name, in both forms of answer', async () => {
  const lookup = guardedLookup(async () => [PUBLIC, PUBLIC_6])
  assert.deepEqual(await ask(lookup, true), [PUBLIC, PUBLIC_6])
  assert.deepEqual(await ask(lookup, false), PUBLIC)
})

test('the guarded lookup fails where any address of the name is not public', async () => {
  for (const address of vectors.ssrf.ips.blocked) {
    const family = address.includes(':') ? 6 : 4
    for (const answers of [
      [{ address, family }],
      [PUBLIC, { address, family }],
      [{ address, family }, PUBLIC],
    ]) {
      const lookup = guardedLookup(async () => answers)
      await assert.rejects(ask(lookup, true), { reason: 'not public' })
      await assert.rejects(ask(lookup, false), { reason: 'not public' })
    }
  }
})

test('the guarded lookup fails where the name leads nowhere, or cannot be resolved', async () => {
  await assert.rejects(
    ask(
      guardedLookup(async () => []),
      true,
    ),
    { reason: 'nowhere' },
  )
  const failing = guardedLookup(async () => {
    throw Object.assign(new Error('getaddrinfo ENOTFOUND'), { code: 'ENOTFOUND' })
  })
  await assert.rejects(ask(failing, true), { code: 'ENOTFOUND' })
})

test('an answer that changes between the check and the connection changes nothing', async () => {
  let asked = 0
  const rebinding: Resolve = async () => (asked++ === 0 ? [PUBLIC] : [LOOPBACK])
  const attempted = await attemptedAddress(guardedLookup(rebinding))
  assert.equal(attempted, PUBLIC.address)
  assert.equal(asked, 1)
})

test('a name that leads to loopback from then on is not connected to at all', async () => {
  const lookup = guardedLookup(async () => [LOOPBACK])
  await assert.rejects(attemptedAddress(lookup), { reason: 'not public' })
})

function ask(lookup: LookupFunction, all: boolean): Promise<LookupAddress | LookupAddress[]> {
  return new Promise((resolve, reject) => {
    lookup('pay.example.com', { all }, (error, address, family) => {
      if (error) reject(error)
      else if (typeof address === 'string') resolve({ address, family: family ?? 0 })
      else resolve(address)
    })
  })
}

/** The address that a socket tries. It is bound to loopback, so nothing ever leaves the machine. */
function attemptedAddress(lookup: LookupFunction): Promise<string> {
  return new Promise((resolve, reject) => {
    let attempted: string | null = null
    const socket = connect({
      host: 'pay.example.com',
      port: 443,
      lookup,
      localAddress: '127.0.0.1',
    })
    socket.on('connectionAttempt', (address: string) => {
      attempted = address
    })
    socket.on('error', (error) => {
      if (attempted === null) reject(error)
      else resolve(attempted)
    })
  })
}
