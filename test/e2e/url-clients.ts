/** How clients of other people buy at an address, that npm does not have: told from their sources. */
import assert from 'node:assert/strict'
import { base64, base64Bytes, hex, utf8 } from '../../src/lib/bytes.ts'
import { hmacSha256 } from '../../src/protocol/hmac.ts'
import { decodeMacaroon, encodeMacaroon } from '../../src/protocol/macaroon.ts'
import type { Wallet } from './client-market.ts'

/**
 * PyPI l402-requests 0.9.0, challenge.py and client.py: the first field line that this expression finds, L402
 * before Payment; the credential is kept per host and path.
 */
export async function buyAsL402Requests(url: string, wallet: Wallet): Promise<Response> {
  const asked = await fetch(url)
  if (asked.status !== 402) return asked
  const found = /(?:L402|LSAT)\s+macaroon="([^"]+)"\s*,\s*invoice="([^"]+)"/i.exec(
    asked.headers.get('www-authenticate') ?? '',
  )
  const [, macaroon = '', invoice = ''] = found ?? []
  const { preimage } = await wallet.payInvoice({ invoice })
  return fetch(url, { headers: { authorization: `L402 ${macaroon}:${preimage}` } })
}

/**
 * lnget c855f41, l402/header.go and client/transport.go: only the first field line, which must begin with the
 * scheme; a second challenge before it pays; the macaroon comes back with a caveat of its preimage.
 */
export async function buyAsLnget(url: string, wallet: Wallet): Promise<Response> {
  await fetch(url)
  const asked = await fetch(url)
  if (asked.status !== 402) return asked
  const [scheme, sent = '', invoice = ''] =
    /^(?:LSAT|L402)\s+macaroon="([^"]*?)",\s*invoice="([^"]*?)"/i.exec(
      asked.headers.get('www-authenticate') ?? '',
    ) ?? []
  assert.ok(scheme, 'the first field line is an L402 challenge')
  const macaroon = decodeMacaroon(base64Bytes(sent) ?? new Uint8Array())
  assert.ok(macaroon)
  const { preimage } = await wallet.payInvoice({ invoice })
  const caveat = utf8(`preimage=${preimage}`)
  const token = base64(
    encodeMacaroon({
      ...macaroon,
      caveats: [...macaroon.caveats, caveat],
      signature: hmacSha256(macaroon.signature, caveat),
    }),
  )
  assert.match(hex(macaroon.identifier), /^0000/, 'the version that it reads')
  return fetch(url, { headers: { authorization: `L402 ${token}:${preimage}` } })
}

/** PyPI l402kit 1.10.1: the members of the body first. */
export async function buyAsL402kit(url: string, wallet: Wallet): Promise<Response> {
  const asked = await fetch(url)
  if (asked.status !== 402) return asked
  const { macaroon, invoice } = (await asked.json()) as Record<string, string>
  const { preimage } = await wallet.payInvoice({ invoice: invoice ?? '' })
  return fetch(url, { headers: { authorization: `L402 ${macaroon}:${preimage}` } })
}
