/** `MAYFLY_LIGHTNING_URL` for LND: `lnd+https://host:8080?macaroon=<file>&cert=<file>`. */
import { readFile } from 'node:fs/promises'
import { hex, utf8Text } from '../lib/bytes.ts'
import type { LndOptions } from './lnd.ts'

export type LndAccess = Pick<LndOptions, 'baseUrl' | 'macaroon' | 'certificate'> & {
  private: boolean
}

const EXPECTED = 'lnd+https://host:8080?macaroon=<file>&cert=<file>'
const DEFAULT_PORT = 8080
const PARAMETERS = new Set(['macaroon', 'cert', 'private'])

// Every request carries it in a header, and the node takes 1 MiB of those at most.
const MAX_MACAROON_BYTES = 16 * 1024

/**
 * Reads the URL and the files that it names. `cert` is left out for a node whose certificate the
 * system trusts; `private=1` asks for route hints, which a node without public channels needs.
 * @throws Error that names the setting and the piece that is wrong.
 */
export async function readLndUrl(text: string): Promise<LndAccess> {
  const url = parse(text)
  const macaroonFile = url.searchParams.get('macaroon')
  const certFile = url.searchParams.get('cert')
  if (!macaroonFile) throw wrong('names no macaroon')
  return {
    baseUrl: `https://${url.hostname}:${url.port || DEFAULT_PORT}`,
    macaroon: readMacaroon(await read('macaroon', macaroonFile)),
    certificate: certFile === null ? undefined : readCertificate(await read('cert', certFile)),
    private: readFlag(url.searchParams.get('private')),
  }
}

function parse(text: string): URL {
  const url = URL.parse(text)
  if (url?.protocol !== 'lnd+https:' || url.hostname === '') throw wrong('is not of this form')
  if (url.username || url.password) throw wrong('has a user or a password, which LND does not know')
  if (!['', '/'].includes(url.pathname) || url.hash) throw wrong('has a path')
  const names = [...url.searchParams.keys()]
  if (names.some((name) => !PARAMETERS.has(name))) throw wrong('has an unknown parameter')
  if (new Set(names).size !== names.length) throw wrong('has a parameter twice')
  return url
}

async function read(parameter: string, file: string): Promise<Uint8Array> {
  try {
    return await readFile(file)
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : 'unknown error'
    throw new Error(`MAYFLY_LIGHTNING_URL: the ${parameter} file ${file} cannot be read (${code})`)
  }
}

/** Hex of the file, which is LND's own binary or its hex. */
function readMacaroon(bytes: Uint8Array): string {
  const text = utf8Text(bytes)?.trim() ?? ''
  const macaroon = /^([0-9a-fA-F]{2})+$/.test(text) ? text.toLowerCase() : hex(bytes)
  // Version 2 of the binary format, the only one that LND writes.
  if (!macaroon.startsWith('02') || macaroon.length > 2 * MAX_MACAROON_BYTES) {
    throw new Error('MAYFLY_LIGHTNING_URL: the macaroon file holds no macaroon, binary or hex')
  }
  return macaroon
}

function readCertificate(bytes: Uint8Array): string {
  const text = utf8Text(bytes) ?? ''
  if (!text.includes('-----BEGIN CERTIFICATE-----')) {
    throw new Error('MAYFLY_LIGHTNING_URL: the cert file holds no PEM certificate')
  }
  return text
}

function readFlag(value: string | null): boolean {
  if (value !== null && value !== '0' && value !== '1') throw wrong('needs private to be 0 or 1')
  return value === '1'
}

function wrong(what: string): Error {
  return new Error(`MAYFLY_LIGHTNING_URL ${what}; expected ${EXPECTED}`)
}
