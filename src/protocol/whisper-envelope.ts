/**
 * The envelope of a WHISPER: the ciphertext that Mayfly's clients upload. docs/whisper.md specifies its bytes.
 * The service never looks inside.
 *
 * Version 1: `0x01 ‖ IV (12) ‖ AES-256-GCM ciphertext ‖ tag (16)`, under the key of the share code.
 * Version 2: `0x02 ‖ salt (16) ‖ IV (12) ‖ ciphertext ‖ tag (16)`, under a key that needs the
 * password as well. The additional data names the version, so that one cannot pass for the other.
 */
import { concat, utf8, utf8Text } from '../lib/bytes.ts'
import { KEY_BYTES } from './whisper-code.ts'

const IV_BYTES = 12
const SALT_BYTES = 16
const TAG_BYTES = 16
const PLAIN = 1
const WITH_PASSWORD = 2

/** OWASP's recommendation for PBKDF2-HMAC-SHA-256 (Password Storage Cheat Sheet). */
const PASSWORD_ROUNDS = 600_000
/** For shorter content, Padmé reveals the length of a password or PIN almost exactly. */
const MIN_PADDED_BYTES = 256
/** The length field has four bytes, and padding may add an eighth. */
const MAX_DATA_BYTES = 2 ** 31
/** The limit of file systems, and of a length field of one byte. */
const MAX_NAME_BYTES = 255
const MAX_MEDIA_TYPE_BYTES = 255

/** Path separators, control characters, and characters that change the reading direction. */
const UNSAFE_IN_NAME = /[/\\\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]/u
/** RFC 9110 §8.3.1, with parameters as any visible text. */
const MEDIA_TYPE = /^[\w!#$%&'*+.^`|~-]+\/[\w!#$%&'*+.^`|~-]+(?:[ ;][ -~]*)?$/

/**
 * The envelope does not open: a wrong key or password, no password where one is needed, an unknown
 * version, or bytes that were cut or changed. The error does not say which, because that is often unknown.
 *
 * ```ts
 * await openWhisper(envelope, key, password).catch((error) => {
 *   if (error instanceof UnreadableWhisper) console.log('another password may do')
 * })
 * ```
 */
export class UnreadableWhisper extends Error {
  override name = 'UnreadableWhisper'
  constructor() {
    super('the whisper does not open: a wrong key or password, or damaged bytes')
  }
}

/** The content of a whisper. `name` is a file name without a path. */
export type WhisperContent = { data: Uint8Array; name?: string; mediaType?: string }

/**
 * The content to seal, and optionally a password that the reader needs besides the key.
 *
 * ```ts
 * const content: SealWhisper = { data, name: 'door.txt', password: 'correct horse' }
 * ```
 */
export type SealWhisper = WhisperContent & {
  /** The reader needs it besides the key. Send it by another way than the share code. */
  password?: string
  /** Random by default. Only test vectors set it: a pair of key and IV must never repeat. */
  key?: Uint8Array
  iv?: Uint8Array
  salt?: Uint8Array
}

/**
 * The encrypted bytes, and the key, which never goes to the service.
 *
 * ```ts
 * const { envelope, key } = await sealWhisper({ data })
 * ```
 */
export type SealedWhisper = {
  envelope: Uint8Array<ArrayBuffer>
  /** 32 bytes, for the share code; the service must never see them. */
  key: Uint8Array<ArrayBuffer>
  hasPassword: boolean
}

/**
 * The content that was sealed. Its sender chose `name` and `mediaType`: trust neither.
 *
 * ```ts
 * const { data, name } = await openWhisper(envelope, key)
 * ```
 */
export type OpenedWhisper = {
  data: Uint8Array<ArrayBuffer>
  name: string | null
  mediaType: string | null
}

/**
 * Encrypts data into an envelope, under a fresh key.
 *
 * ```ts
 * const sealed = await sealWhisper({ data, name: 'door.txt', mediaType: 'text/plain' })
 * ```
 * @throws RangeError for an invalid name, media type, password, key, IV or salt.
 */
export async function sealWhisper(ask: SealWhisper): Promise<SealedWhisper> {
  const { password } = ask
  const hasPassword = password !== undefined
  const version = hasPassword ? WITH_PASSWORD : PLAIN
  const key = fixed('key', ask.key, KEY_BYTES)
  const iv = fixed('iv', ask.iv, IV_BYTES)
  const salt = hasPassword ? fixed('salt', ask.salt, SALT_BYTES) : new Uint8Array()
  const padded = pad(plaintextOf(ask))
  const aesKey = await aesKeyOf({ key, password, salt }, 'encrypt')
  const sealed = await crypto.subtle.encrypt(gcm(version, iv), aesKey, padded)
  return {
    envelope: concat(Uint8Array.of(version), salt, iv, new Uint8Array(sealed)),
    key,
    hasPassword,
  }
}

/**
 * Decrypts an envelope. It also refuses a password that the envelope does not need: otherwise somebody with
 * only the key could replace the envelope by one without a password.
 *
 * ```ts
 * const { data, name, mediaType } = await openWhisper(envelope, key, password)
 * ```
 * @throws UnreadableWhisper, which contains nothing of the content.
 */
export async function openWhisper(
  envelope: Uint8Array,
  key: Uint8Array,
  password?: string,
): Promise<OpenedWhisper> {
  const version = envelope[0]
  const saltBytes = version === WITH_PASSWORD ? SALT_BYTES : 0
  const ivAt = 1 + saltBytes
  const isWhole = envelope.length >= ivAt + IV_BYTES + TAG_BYTES && key.length === KEY_BYTES
  const isKnown =
    (version === PLAIN && password === undefined) ||
    (version === WITH_PASSWORD && password !== undefined && isPassword(password))
  if (!isWhole || !isKnown) throw new UnreadableWhisper()
  const iv = new Uint8Array(envelope.subarray(ivAt, ivAt + IV_BYTES))
  const sealed = new Uint8Array(envelope.subarray(ivAt + IV_BYTES))
  const salt = new Uint8Array(envelope.subarray(1, ivAt))
  const aesKey = await aesKeyOf({ key: new Uint8Array(key), password, salt }, 'decrypt')
  const padded = await decrypt(aesKey, gcm(version, iv), sealed)
  const content = padded && contentOf(padded)
  if (!content) throw new UnreadableWhisper()
  return content
}

/**
 * Whether an envelope needs a password, according to its first byte.
 *
 * ```ts
 * if (needsPassword(envelope)) console.log('a key alone does not open it')
 * ```
 */
export function needsPassword(envelope: Uint8Array): boolean {
  return envelope[0] === WITH_PASSWORD
}

/**
 * The length of a content of `bytes` after Padmé (Nikitin et al., PURBs, PETS 2019 §4). It reveals only the
 * leading O(log log n) bits of the length, and adds at most 12 %.
 */
export function paddedLength(bytes: number): number {
  const length = Math.max(bytes, MIN_PADDED_BYTES)
  const exponent = Math.floor(Math.log2(length))
  const leadingBits = Math.floor(Math.log2(exponent)) + 1
  const step = 2 ** (exponent - leadingBits)
  return Math.ceil(length / step) * step
}

/** The length of the envelope of a content, to check a limit before encrypting. */
export function envelopeLength({
  dataBytes,
  name = '',
  mediaType = '',
  hasPassword,
}: {
  dataBytes: number
  name?: string
  mediaType?: string
  hasPassword: boolean
}): number {
  const plaintext = 1 + utf8(name).length + 1 + utf8(mediaType).length + 4 + dataBytes
  const beforeIv = hasPassword ? 1 + SALT_BYTES : 1
  return beforeIv + IV_BYTES + paddedLength(plaintext) + TAG_BYTES
}

/** Whether an envelope accepts this media type. */
export function isMediaType(text: string): boolean {
  // The pattern allows ASCII only, so characters are bytes.
  return text.length <= MAX_MEDIA_TYPE_BYTES && MEDIA_TYPE.test(text)
}

/** Turns any name into one that an envelope accepts; null if nothing of it is left. */
export function safeName(name: string): string | null {
  let safe = [...name.toWellFormed()]
    .map((character) => (UNSAFE_IN_NAME.test(character) ? '_' : character))
    .join('')
  while (utf8(safe).length > MAX_NAME_BYTES) safe = [...safe].slice(0, -1).join('')
  return safe !== '' && isName(safe, utf8(safe).length) ? safe : null
}

/** `name length (1) ‖ name ‖ media type length (1) ‖ media type ‖ data length (4) ‖ data`. */
function plaintextOf({ data, name = '', mediaType = '' }: WhisperContent): Uint8Array<ArrayBuffer> {
  const nameBytes = utf8(name)
  const mediaTypeBytes = utf8(mediaType)
  if (!name.isWellFormed() || !isName(name, nameBytes.length)) {
    throw new RangeError('"name" must be a file name without a path, of at most 255 bytes')
  }
  if (mediaType !== '' && !isMediaType(mediaType)) {
    throw new RangeError('"mediaType" must be a media type of at most 255 bytes')
  }
  if (data.length > MAX_DATA_BYTES) throw new RangeError('"data" must be at most 2 GiB')
  const dataLength = new DataView(new ArrayBuffer(4))
  dataLength.setUint32(0, data.length)
  return concat(
    Uint8Array.of(nameBytes.length),
    nameBytes,
    Uint8Array.of(mediaTypeBytes.length),
    mediaTypeBytes,
    new Uint8Array(dataLength.buffer),
    data,
  )
}

function pad(plaintext: Uint8Array): Uint8Array<ArrayBuffer> {
  const padded = new Uint8Array(paddedLength(plaintext.length))
  padded.set(plaintext)
  return padded
}

/** The content of a padded plaintext, or null if `plaintextOf` and `pad` could not have written it. */
function contentOf(padded: Uint8Array<ArrayBuffer>): OpenedWhisper | null {
  const nameEnd = 1 + (padded[0] ?? 0)
  const mediaTypeEnd = nameEnd + 1 + (padded[nameEnd] ?? 0)
  const dataAt = mediaTypeEnd + 4
  if (dataAt > padded.length) return null
  const length = new DataView(padded.buffer, mediaTypeEnd, 4).getUint32(0)
  const dataEnd = dataAt + length
  if (paddedLength(dataEnd) !== padded.length) return null
  for (let i = dataEnd; i < padded.length; i++) if (padded[i] !== 0) return null
  const name = utf8Text(padded.subarray(1, nameEnd))
  const mediaType = utf8Text(padded.subarray(nameEnd + 1, mediaTypeEnd))
  // The sender is a stranger, so the name and the media type must be safe for pages and file systems.
  if (name === null || !isName(name, nameEnd - 1)) return null
  if (mediaType === null || (mediaType !== '' && !isMediaType(mediaType))) return null
  return { data: padded.slice(dataAt, dataEnd), name: name || null, mediaType: mediaType || null }
}

function isName(name: string, bytes: number): boolean {
  return bytes <= MAX_NAME_BYTES && name !== '.' && name !== '..' && !UNSAFE_IN_NAME.test(name)
}

/** A lone surrogate has no UTF-8 bytes, and nobody can type it. */
function isPassword(password: string): boolean {
  return password !== '' && password.isWellFormed()
}

type KeyParts = {
  key: Uint8Array<ArrayBuffer>
  password: string | undefined
  salt: Uint8Array<ArrayBuffer>
}

/** The key of the share code; with a password HKDF over key ‖ PBKDF2(password), so that only both open the envelope. */
async function aesKeyOf(
  { key, password, salt }: KeyParts,
  use: 'encrypt' | 'decrypt',
): Promise<CryptoKey> {
  const { subtle } = crypto
  if (password === undefined) return subtle.importKey('raw', key, 'AES-GCM', false, [use])
  if (!isPassword(password)) throw new RangeError('"password" must be text, and not empty')
  // Normalised, because keyboards encode the same password differently (RFC 8265 §4.2).
  const typed = utf8(password.normalize('NFC'))
  const stretched = await subtle.deriveBits(
    { name: 'PBKDF2', hash: 'SHA-256', salt, iterations: PASSWORD_ROUNDS },
    await subtle.importKey('raw', typed, 'PBKDF2', false, ['deriveBits']),
    8 * KEY_BYTES,
  )
  const material = concat(key, new Uint8Array(stretched))
  return subtle.deriveKey(
    { name: 'HKDF', hash: 'SHA-256', salt, info: context(WITH_PASSWORD) },
    await subtle.importKey('raw', material, 'HKDF', false, ['deriveKey']),
    { name: 'AES-GCM', length: 8 * KEY_BYTES },
    false,
    [use],
  )
}

/** The plaintext, or null if the tag is wrong. */
async function decrypt(
  key: CryptoKey,
  params: AesGcmParams,
  sealed: Uint8Array<ArrayBuffer>,
): Promise<Uint8Array<ArrayBuffer> | null> {
  try {
    return new Uint8Array(await crypto.subtle.decrypt(params, key, sealed))
  } catch {
    return null
  }
}

function gcm(version: number, iv: Uint8Array<ArrayBuffer>): AesGcmParams {
  return { name: 'AES-GCM', iv, additionalData: context(version), tagLength: 8 * TAG_BYTES }
}

const context = (version: number): Uint8Array<ArrayBuffer> => utf8(`mayfly/whisper/${version}`)

function fixed(
  name: string,
  given: Uint8Array | undefined,
  length: number,
): Uint8Array<ArrayBuffer> {
  if (given === undefined) return crypto.getRandomValues(new Uint8Array(length))
  if (given.length !== length) throw new RangeError(`"${name}" must be ${length} bytes`)
  return new Uint8Array(given)
}
