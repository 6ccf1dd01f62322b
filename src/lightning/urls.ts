/** The forms of `MAYFLY_LIGHTNING_URL` by backend. They are parsed strictly, and errors never quote them. */
import { createECDH } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { hex, utf8Text } from '../lib/bytes.ts'
import { codeOf } from '../lib/errors.ts'

/** The kinds of backends, by the scheme of their URL. */
export type Backend = 'simulator' | 'lnd' | 'phoenixd' | 'cln' | 'nwc'

const SCHEMES: Record<string, Backend> = {
  'lnd+https:': 'lnd',
  'phoenixd+http:': 'phoenixd',
  'phoenixd+https:': 'phoenixd',
  'cln+https:': 'cln',
  'nostr+walletconnect:': 'nwc',
}

/** The forms of the URLs, as people read them in messages. */
export const BACKEND_FORMS =
  '`simulator:`, `lnd+https://host:8080?macaroon=<file>&cert=<file>`, ' +
  '`phoenixd+http://:<password>@host:9740`, `cln+https://host:3010?rune=<file>&cert=<file>` ' +
  'or `nostr+walletconnect://…`'

/** The backend that a URL asks for, or null where its scheme is unknown. */
export function backendOf(url: string): Backend | null {
  if (url === 'simulator:') return 'simulator'
  return SCHEMES[/^[a-z+]+:/.exec(url)?.[0] ?? ''] ?? null
}

/** The setting that a URL comes from, unless the caller names another. */
const SETTING = 'MAYFLY_LIGHTNING_URL'

/** LND: `lnd+https://host:8080?macaroon=<file>&cert=<file>`. */
export type LndAccess = Omit<RestUrl, 'secret'> & {
  /** In hex. It needs invoices:read, invoices:write and info:read. */
  macaroon: string
}

/** @throws Error that names the setting and the wrong part. */
export async function readLndUrl(text: string, setting = SETTING): Promise<LndAccess> {
  const { secret: macaroon, ...access } = await readRestUrl(text, {
    setting,
    expected: 'lnd+https://host:8080?macaroon=<file>&cert=<file>',
    schemes: ['lnd+https:'],
    defaultPort: 8080,
    secret: 'macaroon',
    contents: 'macaroon, binary or hex',
    readSecret: readMacaroon,
  })
  return { ...access, macaroon }
}

// Every request carries the macaroon in a header, and the node accepts at most 1 MiB of headers.
const MAX_MACAROON_BYTES = 16 * 1024

/** The macaroon in hex. The file holds LND's binary format, or hex. */
function readMacaroon(bytes: Uint8Array): string | null {
  const text = utf8Text(bytes)?.trim() ?? ''
  const macaroon = /^([0-9a-fA-F]{2})+$/.test(text) ? text.toLowerCase() : hex(bytes)
  // LND writes only version 2 of the binary format, which begins with this byte.
  return macaroon.startsWith('02') && macaroon.length <= 2 * MAX_MACAROON_BYTES ? macaroon : null
}

/** Core Lightning: `cln+https://host:3010?rune=<file>&cert=<file>`. */
export type ClnAccess = Omit<RestUrl, 'secret'> & { rune: string }

/** @throws Error that names the setting and the wrong part. */
export async function readClnUrl(text: string, setting = SETTING): Promise<ClnAccess> {
  const { secret: rune, ...access } = await readRestUrl(text, {
    setting,
    expected: 'cln+https://host:3010?rune=<file>&cert=<file>',
    schemes: ['cln+https:'],
    defaultPort: 3010,
    secret: 'rune',
    contents: 'rune',
    readSecret: readRune,
  })
  return { ...access, rune }
}

const MAX_RUNE_CHARACTERS = 16 * 1024

/** The file holds the rune, or the whole output of `lightning-cli createrune`. */
function readRune(bytes: Uint8Array): string | null {
  const text = utf8Text(bytes)?.trim() ?? ''
  const rune = /"rune"\s*:\s*"([^"]+)"/.exec(text)?.[1] ?? text
  const isRune = /^[A-Za-z0-9_-]{40,}={0,2}$/.test(rune) && rune.length <= MAX_RUNE_CHARACTERS
  return isRune ? rune : null
}

/** phoenixd: `phoenixd+http://:<password>@host:9740`. */
export type PhoenixdAccess = {
  baseUrl: string
  password: string
  /** The PEM of the certificate, if phoenixd is behind a proxy that has its own. */
  certificate: string | undefined
}

const PHOENIXD = {
  expected: 'phoenixd+http://:<password>@host:9740',
  schemes: ['phoenixd+http:', 'phoenixd+https:'],
  parameters: ['cert'],
  hasPassword: true,
} as const
const PHOENIXD_PORT = 9740

/**
 * Reads the URL, and the file that `cert` names.
 * @throws Error that names the setting and the wrong part.
 */
export async function readPhoenixdUrl(text: string, setting = SETTING): Promise<PhoenixdAccess> {
  const form = { ...PHOENIXD, setting }
  const url = parseNodeUrl(text, form)
  const scheme = url.protocol.slice('phoenixd+'.length)
  const password = decoded(url.password)
  if (!password) throw wrongUrl(form, 'has no password')
  if (scheme === 'http:' && url.searchParams.has('cert')) {
    throw wrongUrl(form, 'has a cert, which needs phoenixd+https')
  }
  return {
    baseUrl: `${scheme}//${url.hostname}:${url.port || PHOENIXD_PORT}`,
    password,
    certificate: await readCertificate(form, url),
  }
}

function decoded(text: string): string | null {
  try {
    return decodeURIComponent(text)
  } catch {
    return null
  }
}

/** A wallet over Nostr (NIP-47): `nostr+walletconnect://…`. */
export type NwcAccess = {
  /** The URL as the wallet gave it, with its secret. */
  url: string
  relays: string[]
}

const NWC_FORM = 'nostr+walletconnect://<public key>?relay=wss://<host>&secret=<hex>'
const MAX_RELAYS = 8

/** Checks the URL. @throws Error that names the setting and the wrong part. */
export function readNwcUrl(text: string, setting = SETTING): NwcAccess {
  const form = { expected: NWC_FORM, setting }
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

type UrlForm = {
  /** The name of the setting, for error messages. */
  setting: string
  /** An example of the form, for error messages. */
  expected: string
  /** The accepted schemes, with the colon. */
  schemes: readonly string[]
  /** The parameters that the query may have. */
  parameters: readonly string[]
  /** Whether the URL carries the node's password. */
  hasPassword?: true
}

/** Parses the URL. @throws Error that names the setting and what is wrong. */
function parseNodeUrl(text: string, form: UrlForm): URL {
  const url = URL.parse(text)
  if (!url || !form.schemes.includes(url.protocol) || url.hostname === '') {
    throw wrongUrl(form, 'is not of this form')
  }
  if (url.username || (url.password && !form.hasPassword)) {
    throw wrongUrl(form, form.hasPassword ? 'has a user' : 'has a user or a password')
  }
  if (!['', '/'].includes(url.pathname) || url.hash) throw wrongUrl(form, 'has a path')
  const names = [...url.searchParams.keys()]
  if (names.some((name) => !form.parameters.includes(name))) {
    throw wrongUrl(form, 'has an unknown parameter')
  }
  if (new Set(names).size !== names.length) throw wrongUrl(form, 'has a parameter twice')
  return url
}

/** A node's REST port, the secret that opens it, and whether invoices get route hints. */
type RestUrl = {
  baseUrl: string
  secret: string
  /** The PEM of the node's own certificate, or of its authority. Default: the system's roots. */
  certificate: string | undefined
  /** Puts hints to private channels into invoices. A node without public channels needs them. */
  private: boolean
}

type RestForm = Omit<UrlForm, 'parameters'> & {
  defaultPort: number
  /** The parameter that names the file of the secret. */
  secret: string
  /** What that file should hold, for error messages. */
  contents: string
  /** Reads the secret from the bytes of its file. Null if they are no such secret. */
  readSecret(bytes: Uint8Array): string | null
}

/**
 * Parses a URL `<scheme>://host:port?<secret>=<file>&cert=<file>` and reads the files that it names. A node
 * whose certificate the system trusts needs no `cert`.
 * @throws Error that names the setting and the wrong part.
 */
async function readRestUrl(text: string, rest: RestForm): Promise<RestUrl> {
  const form: UrlForm = { ...rest, parameters: [rest.secret, 'cert', 'private'] }
  const url = parseNodeUrl(text, form)
  const file = url.searchParams.get(rest.secret)
  if (!file) throw wrongUrl(form, `names no ${rest.secret}`)
  const secret = rest.readSecret(await readNamedFile(form, rest.secret, file))
  if (secret === null) {
    throw new Error(`${form.setting}: the ${rest.secret} file holds no ${rest.contents}`)
  }
  return {
    baseUrl: `https://${url.hostname}:${url.port || rest.defaultPort}`,
    secret,
    certificate: await readCertificate(form, url),
    private: readPrivate(form, url),
  }
}

/** `private=1` puts hints to private channels into invoices. */
function readPrivate(form: UrlForm, url: URL): boolean {
  const value = url.searchParams.get('private') ?? '0'
  if (value !== '0' && value !== '1') throw wrongUrl(form, 'needs private to be 0 or 1')
  return value === '1'
}

function wrongUrl(
  { setting, expected }: Pick<UrlForm, 'setting' | 'expected'>,
  what: string,
): Error {
  return new Error(`${setting} ${what}; expected ${expected}`)
}

/** The bytes of a file that the URL names. @throws Error that names the setting. */
async function readNamedFile(
  { setting }: UrlForm,
  parameter: string,
  file: string,
): Promise<Uint8Array> {
  try {
    return await readFile(file)
  } catch (error) {
    const code = codeOf(error) || 'unknown error'
    throw new Error(`${setting}: the ${parameter} file ${file} cannot be read (${code})`)
  }
}

/** The PEM that `cert` names, or undefined without one. @throws Error that names the setting. */
async function readCertificate(form: UrlForm, url: URL): Promise<string | undefined> {
  const file = url.searchParams.get('cert')
  if (file === null) return undefined
  const text = utf8Text(await readNamedFile(form, 'cert', file)) ?? ''
  if (!text.includes('-----BEGIN CERTIFICATE-----')) {
    throw new Error(`${form.setting}: the cert file holds no PEM certificate`)
  }
  return text
}
