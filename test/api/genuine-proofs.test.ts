/**
 * A proof that is genuine is never answered with something to pay: the challenge is judged before the preimage
 * beside it is read.
 */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, suite, test } from 'node:test'
import { base64, base64url, hexBytes, utf8 } from '../../src/lib/bytes.ts'
import { type Answer, books, macaroonOf, paymentChallengeOf, purchase } from '../support/buying.ts'
import { look, offerOf } from '../support/one-url.ts'
import type { TestServer } from '../support/server.ts'
import { capabilityOf, L402, PAYMENT, paidOrderVia, startShop } from '../support/wallet-flow.ts'

const SCHEMES = { Payment: PAYMENT, L402 }
type Scheme = keyof typeof SCHEMES

/** A credential with this preimage, whatever it looks like; undefined leaves it out. */
function credential(scheme: Scheme, challenge: Answer, preimage?: string): string {
  if (scheme === 'L402') {
    const macaroon = macaroonOf(challenge)
    return preimage === undefined ? `L402 ${macaroon}` : `L402 ${macaroon}:${preimage}`
  }
  const payload = preimage === undefined ? {} : { preimage }
  return `Payment ${base64url(utf8(JSON.stringify({ challenge: paymentChallengeOf(challenge), payload })))}`
}

/** What clients send in place of 64 hex digits. */
const SPOILED: Record<string, (preimage: string) => string | undefined> = {
  'in base64': (preimage) => base64(hexBytes(preimage) ?? new Uint8Array()),
  'in base64url': (preimage) => base64url(hexBytes(preimage) ?? new Uint8Array()),
  'with 0x before it': (preimage) => `0x${preimage}`,
  'with a space behind it and more': (preimage) => `${preimage} x`,
  'that is empty': () => '',
  'that is left out': () => undefined,
  'of 62 digits': (preimage) => preimage.slice(2),
  'of 66 digits': (preimage) => `${preimage}00`,
  'of another payment': () => '00'.repeat(32),
}

/** The requests that may bring it. Each answers an order that is paid. */
const PLACES = {
  'on the keyed route': async (server: TestServer, scheme: Scheme) => {
    const order = await paidOrderVia(server, SCHEMES[scheme])
    const ask = (authorization: string | string[]) =>
      purchase(server, { key: order.key, authorization })
    return { ...order, ask }
  },
  'under a new key': async (server: TestServer, scheme: Scheme) => {
    const order = await paidOrderVia(server, SCHEMES[scheme])
    const ask = (authorization: string | string[]) =>
      purchase(server, { key: randomUUID(), authorization })
    return { ...order, ask }
  },
  'on /api/buy': async (server: TestServer) => {
    const challenge = await look(server, {})
    const preimage = await server.pay(offerOf(challenge).invoice)
    return {
      challenge,
      preimage,
      ask: (authorization: string | string[]) => look(server, { authorization }),
    }
  },
}

function assertNothingToPay(answer: Answer, scheme: Scheme, note: string): void {
  assert.equal(answer.status, 401, `${note}: ${answer.status} ${answer.text}`)
  assert.deepEqual(answer.lines('www-authenticate'), [`${scheme} realm="localhost"`], note)
  assert.doesNotMatch(answer.whole, /lnbc|macaroon=|invoice=/, note)
  const { field, expected } = JSON.parse(answer.text)
  assert.equal(field, 'Authorization', note)
  assert.match(expected, /64 hex digits/, note)
}

for (const scheme of ['Payment', 'L402'] as const) {
  suite(`a genuine ${scheme} challenge of a paid order`, () => {
    const starting = startShop({ after })
    for (const [place, buy] of Object.entries(PLACES)) {
      test(`${place}, whose preimage nobody can read, is a bare 401 and opens no order`, async () => {
        const server = await starting
        const { challenge, preimage, ask } = await buy(server, scheme)
        const before = await books(server)
        for (const [how, spoil] of Object.entries(SPOILED)) {
          const answer = await ask(credential(scheme, challenge, spoil(preimage)))
          assertNothingToPay(answer, scheme, `a preimage ${how}`)
        }
        const { orders, invoices } = await books(server)
        assert.deepEqual({ orders, invoices }, { orders: before.orders, invoices: before.invoices })
        capabilityOf(await ask(credential(scheme, challenge, preimage.toUpperCase())))
        assertNothingToPay(await ask(credential(scheme, challenge, 'x')), scheme, 'delivered')
      })

      test(`${place}, in two different Authorization lines, is a bare 401 and opens no order`, async () => {
        const server = await starting
        const { challenge, preimage, ask } = await buy(server, scheme)
        const right = credential(scheme, challenge, preimage)
        const before = await books(server)
        const pairs = [
          [right, credential(scheme, challenge, '00'.repeat(32))],
          [credential(scheme, challenge, ''), right],
          [`${scheme} bad`, right],
          ...(scheme === 'Payment' ? [[right, right]] : []),
        ]
        for (const lines of pairs) assertNothingToPay(await ask(lines), scheme, 'two lines')
        assert.equal((await books(server)).orders, before.orders)
        // A forged one of the other scheme beside it counts for nothing.
        const other = scheme === 'L402' ? 'Payment e30' : 'L402 bad'
        for (const lines of [
          [other, right],
          [right, other],
        ])
          capabilityOf(await ask(lines))
      })
    }
  })
}
