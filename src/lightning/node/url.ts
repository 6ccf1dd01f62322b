/** What the URLs of all nodes have in common. They are parsed strictly, and errors never quote them. */
import { readFile } from 'node:fs/promises'
import { utf8Text } from '../../lib/bytes.ts'
import { codeOf } from '../../lib/errors.ts'

/** The setting that a URL comes from, unless the caller names another. */
export const SETTING = 'MAYFLY_LIGHTNING_URL'

export type UrlForm = {
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
export function parseNodeUrl(text: string, form: UrlForm): URL {
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
export type RestUrl = {
  baseUrl: string
  secret: string
  /** The PEM of the node's own certificate, or of its authority. Default: the system's roots. */
  certificate: string | undefined
  /** Puts hints to private channels into invoices. A node without public channels needs them. */
  private: boolean
}

export type RestForm = Omit<UrlForm, 'parameters'> & {
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
export async function readRestUrl(text: string, rest: RestForm): Promise<RestUrl> {
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

export function wrongUrl(
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
export async function readCertificate(form: UrlForm, url: URL): Promise<string | undefined> {
  const file = url.searchParams.get('cert')
  if (file === null) return undefined
  const text = utf8Text(await readNamedFile(form, 'cert', file)) ?? ''
  if (!text.includes('-----BEGIN CERTIFICATE-----')) {
    throw new Error(`${form.setting}: the cert file holds no PEM certificate`)
  }
  return text
}
