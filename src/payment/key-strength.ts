/**
 * Decides whether an Idempotency-Key is strong, which means that nobody can guess it. A stranger who guesses
 * a key can open its order first and collect what another buyer pays for, so only random formats are strong.
 * Calling a strong key weak makes a buyer whose address changed prove the payment. Calling a weak key strong
 * can lose the capability. In doubt a key is weak.
 *
 * A hash in base64 looks like random bytes and passes. A hash in hex is recognised by its length.
 */
import { createHash } from 'node:crypto'
import { createBase58check } from '@scure/base'
import { containsId } from '../lib/ids.ts'

/** The dashes identify a UUID, so no word boundary is needed around it. */
const UUID = /([0-9a-f]{8})-([0-9a-f]{4})-([0-9a-f]{4})-([0-9a-f]{4})-([0-9a-f]{12})/gi
/** ULID: 48 bits of time and 80 random bits, in Crockford's base32. Both cases in one are words, not a ULID. */
const ULID =
  /(?<![0-9A-Za-z])[0-7](?:[0-9A-HJKMNP-TV-Z]{25}|[0-9a-hjkmnp-tv-z]{25})(?![0-9A-Za-z])/g
const ULID_TIME_CHARACTERS = 10
const CROCKFORD = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'

/** Most digests are 16, 20, 32 or 64 bytes long; no common digest has 24. */
const UUID_HEX_DIGITS = 32
const RANDOM_HEX_DIGITS = 48
/** A random token of more letters may contain shorter hex by chance. It does not contain longer hex. */
const HEX_RUN = /(?<![0-9a-f])(?:[0-9a-f]{16,}|[0-9A-F]{16,})(?![0-9a-f])/gi
/** Between separators, even a few hex digits are part of a UUID, a hash or a counter. */
const HEX_PIECE = /(?<![0-9A-Za-z])(?:[0-9a-f]{4,}|[0-9A-F]{4,})(?![0-9A-Za-z])/g

/** These formats look random but mostly count. ObjectId counts too, and is covered as hex. */
const XID = /(?<![0-9A-Za-z])[0-9a-v]{20}(?![0-9A-Za-z])/g
const CUID_1 = /(?<![0-9A-Za-z])c[0-9a-z]{24}(?![0-9A-Za-z])/g

/** The time in a UUIDv7 or a ULID must lie between 2015 and 2100, in unix milliseconds. */
const FIRST_TIME = 1_420_070_400_000
const LAST_TIME = 4_102_444_800_000

/** A token is random if this many characters in a row are: about 100 bits. */
const WINDOW = 20
/** At least this many of the window's 19 pairs are unusual in written text; random windows have about 16. */
const MIN_SURPRISES = 10
/** At least this many characters of the window differ; in random windows about 15 do. */
const MIN_DISTINCT = 10
/** At most this many sequences of three characters occur again; in random windows none or one does. */
const MAX_REPEATED_TRIPLES = 3
/** In 123456 each step is 1. */
const MAX_EQUAL_STEPS_SHARE = 0.7

/** At least this many of a UUID's 32 hex digits differ; in random ones about 14 do. */
const MIN_DISTINCT_UUID = 9
/**
 * Most clients make UUIDs, so calling even one in a million weak would cost a buyer the repeat of an answer.
 * Only UUIDs that people type repeat this much.
 */
const MAX_REPEATED_UUID = 8
/** The same for the part of a UUIDv7 or ULID behind the time, which has 16 to 19 characters. */
const MIN_DISTINCT_TAIL = 6
/** At least this many of the 15 pairs in a ULID's tail are unusual in words; in random ones about 12 are. */
const MIN_SURPRISES_TAIL = 6

/** A text of at least this length may encode another text. */
const MIN_CODED = 16
/** Part of a longer key that may encode a text, like the first two parts of a JWT. */
const CODED_PART = /[0-9A-Za-z+/]{16,}={0,6}/g
const BASE32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'

/** Whether nobody can guess the key. */
export function isStrongKey(key: string): boolean {
  return !namesSomething(key) && isRandom(key)
}

/** Whether the text contains something that other people know: an id of this service, an address, a URL. */
function namesSomething(key: string): boolean {
  return (
    containsId(key) ||
    EXAMPLES.some((example) => key.toLowerCase().includes(example)) ||
    KNOWN_TO_OTHERS.some((pattern) => pattern.test(key)) ||
    hasCoinAddress(key)
  )
}

/** Examples of random keys from documents, in lower case: some clients send them unchanged. */
const EXAMPLES = [
  // RFC 9562, draft-ietf-httpapi-idempotency-key-header.
  '919108f7-52d1-4320-9bac-f847db4148a8',
  '017f22e2-79b0-7cc3-98c4-dc0c0c07398f',
  '8e03978e-40d5-43e8-bc93-6894a57f9324',
  // OpenAPI tools, Wikipedia and the README files of generators.
  '3fa85f64-5717-4562-b3fc-2c963f66afa6',
  '550e8400-e29b-41d4-a716-446655440000',
  'f47ac10b-58cc-4372-a567-0e02b2c3d479',
  '9b1deb4d-3b7d-4bad-9bdd-2b0d7b3dcb6d',
  '01arz3ndektsv4rrffq69g5fav',
  '0ujsswthigtuym2k8fjoofxty1k',
  'v1stgxr8_z5jdhi6b-myt',
  'tz4a98xxat96iws9zmbrgj3a',
]

const KNOWN_TO_OTHERS = [
  /[a-z][a-z0-9+.-]*:\/\//i,
  /\b(?:mailto|lightning|bitcoin|nostr|tel):/i,
  /\bwww\./i,
  // A host with a path.
  /\b[a-z0-9-]+(?:\.[a-z0-9-]+)*\.[a-z]{2,24}(?::[0-9]+)?\//i,
  // An e-mail or a Lightning address.
  /[^\s@]@[a-z0-9-]+(?:\.[a-z0-9-]+)*\.[a-z]{2,}/i,
  // IPv4; IPv6, a MAC.
  /(?<![0-9])[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?![0-9])/,
  /(?:[0-9a-f]{1,4}:){4}/i,
  /[0-9a-f]{1,4}::[0-9a-f]{1,4}|(?<![^\s[(=])::[0-9a-f]{1,4}/i,
  // Invoices and addresses of Lightning, bitcoin and nostr.
  /(?<![0-9a-z])(?:bc|tb|bcrt|lno|lnurl|npub|nevent|note|nprofile)1[02-9ac-hj-np-z]{20}/i,
  /(?<![0-9a-z])ln(?:bcrt|bc|tbs|tb)[0-9]*[munp]?1[02-9ac-hj-np-z]{20}/i,
  /(?<![0-9a-z])0x[0-9a-f]{16}/i,
  // An onion address, which is a key in base32; a CID, which is a hash.
  /(?<![0-9a-z])[a-z2-7]{55}d(?![0-9a-z])/i,
  /(?<![0-9A-Za-z])Qm[1-9A-HJ-NP-Za-km-z]{44}(?![0-9A-Za-z])/,
  /(?<![0-9a-z])baf[a-z2-7]{56}(?![0-9a-z])/,
  // A hash with the name of its algorithm.
  /(?<![0-9a-z])(?:sha-?[0-9]{1,3}|md5|blake[0-9][a-z]?|crc32|etag)[-_:=/ ]/i,
]

/** Bitcoin's older addresses have a checksum; KSUIDs and other base62 tokens do not. */
function hasCoinAddress(key: string): boolean {
  for (const [text] of key.matchAll(
    /(?<![0-9A-Za-z])[1-9A-HJ-NP-Za-km-z]{26,35}(?![0-9A-Za-z])/g,
  )) {
    try {
      if (base58check.decode(text).length === 21) return true
    } catch {
      // Without a valid checksum it is not an address.
    }
  }
  return false
}

const base58check = createBase58check((bytes) => createHash('sha256').update(bytes).digest())

function isRandom(text: string): boolean {
  for (const [, ...groups] of text.matchAll(UUID)) if (isRandomUuid(groups.join(''))) return true
  for (const [ulid] of text.matchAll(ULID)) if (isRandomUlid(ulid.toUpperCase())) return true
  for (const [digits] of text.matchAll(HEX_RUN)) {
    if (digits.length === UUID_HEX_DIGITS && isRandomUuid(digits)) return true
    const isText = decoded(digits) !== null
    if (digits.length === RANDOM_HEX_DIGITS && !isText && isUneven(digits, MIN_DISTINCT))
      return true
  }
  // An encoded text is as strong as the text, however often it is encoded: each time it gets shorter.
  const inner = decoded(text)
  if (inner !== null) return isStrongKey(inner)
  let opaque = text
  for (const [part] of text.matchAll(CODED_PART)) {
    const spelled = decoded(part)
    if (spelled === null) continue
    if (isStrongKey(spelled)) return true
    opaque = opaque.replace(part, ' ')
  }
  const rest = [UUID, XID, CUID_1, HEX_RUN, HEX_PIECE].reduce(
    (left, known) => left.replaceAll(known, ' '),
    opaque,
  )
  return rest.split(/[^0-9A-Za-z+/_-]/).some(hasRandomWindow)
}

/** Accepts version 4, and version 7 with a plausible time. Other versions count, or name a machine or a hash. */
function isRandomUuid(digits: string): boolean {
  const version = digits[12]
  // Few different digits or many repeats can be chance. Both together mean that a person typed it.
  const isByChance =
    isUneven(digits, MIN_DISTINCT_UUID, MAX_REPEATED_UUID) ||
    isUneven(digits, MIN_DISTINCT_UUID - 2, MAX_REPEATED_TRIPLES - 1)
  if (!/[89ab]/i.test(digits[16] ?? '') || !isByChance) return false
  if (version === '4') return true
  const time = Number.parseInt(digits.slice(0, 12), 16)
  return version === '7' && isTime(time) && isUneven(digits.slice(13), MIN_DISTINCT_TAIL)
}

function isRandomUlid(ulid: string): boolean {
  let time = 0
  for (const digit of ulid.slice(0, ULID_TIME_CHARACTERS)) {
    time = time * 32 + CROCKFORD.indexOf(digit)
  }
  const tail = ulid.slice(ULID_TIME_CHARACTERS)
  return isTime(time) && isUneven(tail, MIN_DISTINCT_TAIL) && surprises(tail) >= MIN_SURPRISES_TAIL
}

const isTime = (time: number): boolean => time >= FIRST_TIME && time < LAST_TIME

function hasRandomWindow(text: string): boolean {
  for (let start = 0; start + WINDOW <= text.length; start++) {
    const window = text.slice(start, start + WINDOW)
    if (surprises(window) >= MIN_SURPRISES && isUneven(window, MIN_DISTINCT)) return true
  }
  return false
}

/** Whether the text has many different characters, does not repeat itself, and does not count. */
function isUneven(text: string, minDistinct: number, maxRepeated = MAX_REPEATED_TRIPLES): boolean {
  if (new Set(text).size < minDistinct) return false
  const triples = new Set<string>()
  let repeated = 0
  for (let i = 0; i + 3 <= text.length; i++) {
    const triple = text.slice(i, i + 3)
    if (triples.has(triple)) repeated++
    triples.add(triple)
  }
  if (repeated > maxRepeated) return false
  const lower = text.toLowerCase()
  // Letters and digits are also checked alone, as in a1b2c3, if they make up half of the text: in a shorter
  // part, a few characters may count by chance. The shortest text has 16 characters.
  const alone = [lower.replaceAll(/[^a-z]/g, ''), lower.replaceAll(/[^0-9]/g, '')]
  return [lower, ...alone.filter((part) => part.length * 2 >= text.length)].every(
    (part) => !isCounted(part),
  )
}

/** Whether most steps from one character to the next have the same size: 0, 1 or -1. */
function isCounted(text: string): boolean {
  const steps = text.length - 1
  return ORDERS.some((order) => {
    const counts = new Map<number, number>()
    for (let i = 0; i < steps; i++) {
      const step = order.indexOf(text[i + 1] ?? '') - order.indexOf(text[i] ?? '')
      counts.set(step, (counts.get(step) ?? 0) + 1)
    }
    return [0, 1, -1].some((step) => (counts.get(step) ?? 0) > steps * MAX_EQUAL_STEPS_SHARE)
  })
}

/** The alphabet, and the rows of keyboards. */
const ORDERS = [
  '0123456789abcdefghijklmnopqrstuvwxyz',
  '1234567890qwertyuiopasdfghjklzxcvbnm',
  '1234567890qwertzuiopasdfghjklyxcvbnm',
]

/** How many pairs of neighbouring characters are unusual in words, names, dates and numbers. */
function surprises(text: string): number {
  let count = 0
  for (let i = 1; i < text.length; i++) {
    const before = text[i - 1] ?? ''
    const after = text[i] ?? ''
    if (isLetter(before) && isLetter(after)) {
      const isCapital = isUpper(before) && !isUpper(after) && !isUpper(text[i - 2] ?? '')
      const isSameCase = isUpper(before) === isUpper(after)
      const isUsual = USUAL_PAIRS.has((before + after).toLowerCase())
      if (!isUsual || !(isSameCase || isCapital)) count++
    } else if (isLetter(before) ? isDigit(after) : isDigit(before) && isLetter(after)) {
      count++
    }
  }
  return count
}

const isLetter = (character: string): boolean => /[A-Za-z]/.test(character)
const isUpper = (character: string): boolean => /[A-Z]/.test(character)
const isDigit = (character: string): boolean => /[0-9]/.test(character)

/** Pairs of letters that are common in English and German words, and in programs' abbreviations. */
const USUAL_PAIRS = new Set(
  `ab ac ad ag ai ak al am an ap ar as at au av ay ba be bi bl bo br bu by ca ce ch ci ck cl co cr
  ct cu da de di do dr du ea ec ed ee ef ei el em en ep er es et eu ev ex ey fa fe ff fi fl fo fr
  ft fu ga ge gh gi gl go gr gs gu ha he hi ho hr ht ia ib ic id ie if ig il im in io ir is it iv
  ja jo ka ke ki ks la ld le li ll lo ls lt lu ly ma mb me mi mm mo mp ms mu my na nc nd ne ng ni
  nk nn no ns nt nu ny oa ob oc od of oi ok ol om on oo op or os ot ou ov ow ox pa pe ph pi pl po
  pp pr ps pt pu ra rc rd re rg ri rk rl rm rn ro rr rs rt ru rv ry sa sc se sh si sk sl sm so sp
  ss st su sy ta te th ti tl to tr ts tt tu tw ty ub uc ud ue ug ui ul um un up ur us ut va ve vi
  vo wa we wh wi wn wo ye yo yp ys za ze`.split(/\s+/),
)

/** The text that a key encodes in hex, base32 or base64, or null. */
function decoded(key: string): string | null {
  if (!/^[0-9A-Za-z+/_-]+={0,6}$/.test(key) || key.length < MIN_CODED) return null
  const spelled = [
    ...(/^[0-9a-f]+$/i.test(key) ? [Buffer.from(key, 'hex')] : []),
    ...(/^[a-z2-7]+=*$/i.test(key) ? [base32Bytes(key)] : []),
    Buffer.from(key, 'base64'),
  ]
  for (const bytes of spelled) {
    const text = textIn(bytes)
    if (text !== null) return text
  }
  return null
}

/** The text that somebody may have written in any script, or null. Of 16 random bytes one in a million is one. */
function textIn(bytes: Uint8Array): string | null {
  try {
    const text = UTF_8.decode(bytes)
    return /^[\t\n\r\p{L}\p{M}\p{N}\p{P}\p{S}\p{Zs}]+$/u.test(text) ? text : null
  } catch {
    return null
  }
}

const UTF_8 = new TextDecoder('utf-8', { fatal: true })

/** Ignores case and padding, and drops bits at the end that do not fill a byte. */
function base32Bytes(text: string): Buffer {
  const bits = [...text.toUpperCase().replaceAll('=', '')]
    .map((digit) => BASE32.indexOf(digit).toString(2).padStart(5, '0'))
    .join('')
  return Buffer.from((bits.match(/[01]{8}/g) ?? []).map((byte) => Number.parseInt(byte, 2)))
}
