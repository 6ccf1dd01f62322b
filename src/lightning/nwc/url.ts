/** `MAYFLY_LIGHTNING_URL` for a wallet over Nostr (NIP-47): `nostr+walletconnect://…`. */
import { createECDH } from 'node:crypto'
import { SETTING, wrongUrl } from '../node/url.ts'

export type NwcAccess = {
  /** The URL as the wallet gave it, with its secret. */
  url: string
  relays: string[]
}

const EXPECTED = 'nostr+walletconnect://<public key>?relay=wss://<host>&secret=<hex>'
const MAX_RELAYS = 8

/** Checks the URL. @throws Error that names the setting and the wrong part. */
export function readNwcUrl(text: string, setting = SETTING): NwcAccess {
  const form = { expected: EXPECTED, setting }
  const url = URL.parse(text)
  if (url?.protocol !== 'nostr+walletconnect:') throw wrongUrl(form, 'is not of this form')
  if (!/^[0-9a-f]{64}$/i.test(url.host || url.pathname)) {
    throw wrongUrl(form, 'has no public key of the wallet')
  }
  const secret = url.searchParams.get('secret') ?? ''
  if (!/^[0-9a-f]{64}$/i.test(secret)) throw wrongUrl(form, 'has no secret of 32 bytes in hex')
  // The client would throw where nobody catches it, and so end this process.
  if (!isPrivateKey(secret)) throw wrongUrl(form, 'has a secret that is no private key')
  const relays = url.searchParams.getAll('relay')
  if (relays.length === 0 || relays.length > MAX_RELAYS || !relays.every(isRelay)) {
    throw wrongUrl(form, 'names no relay, or more than eight, or one that is not ws:// or wss://')
  }
  return { url: text, relays }
}

/** Whether the number is at least 1 and below the order of secp256k1. */
function isPrivateKey(hex: string): boolean {
  try {
    createECDH('secp256k1').setPrivateKey(hex, 'hex')
    return true
  } catch {
    return false
  }
}

function isRelay(text: string): boolean {
  const url = URL.parse(text)
  return url !== null && (url.protocol === 'wss:' || url.protocol === 'ws:') && !url.password
}
