/** The client of WHISPER: encrypt and buy, fetch and decrypt. The key never reaches the service. */
import { base64Bytes, base64url } from '../lib/bytes.ts'
import { whisperRequest } from '../protocol/purchase-requests.ts'
import { formatWhisperCode, parseWhisperCode, type WhisperCode } from '../protocol/whisper-code.ts'
import {
  type OpenedWhisper,
  openWhisper,
  type SealedWhisper,
  type SealWhisper,
  sealWhisper as sealEnvelope,
  UnreadableWhisper,
  type WhisperContent,
} from '../protocol/whisper-envelope.ts'
import type { WhisperCapability, WhisperReceipt } from '../whisper/schema.ts'
import { createAlertsClient } from './alerts.ts'
import { MayflyError } from './errors.ts'
import { type CallOptions, callsAt, type Http } from './http.ts'
import type { Payments } from './payments.ts'
import { limited, type Purchase, type PurchaseFromWallet } from './purchase.ts'
import type { Order, PurchaseRecord } from './record.ts'

/**
 * The content, which is encrypted locally, or the result of `sealWhisper`. Repeating an interrupted
 * purchase needs the latter, since its `idempotencyKey` accepts only the same bytes.
 */
export type WhisperTerms = {
  /** The number of reads, from 1 to the plan's maximum, which is the default. */
  readLimit?: number | undefined
  /** Reads are refused before this time, which must be within the bought lifetime. */
  revealAt?: Date | undefined
  /** The capability gets a `receiptToken`, which tells when it was read and destroys it. */
  receipt?: boolean | undefined
  /** A switch's id: reads are refused until its monitor falls silent. It comes with a receipt. */
  revealWhen?: string | undefined
} & ((WhisperContent & { password?: string; sealed?: never }) | { sealed: SealedWhisper })

/** The payment and the content of a whisper. */
export type WhisperPurchase = Purchase & WhisperTerms

/** The capability, and the share code. The code's holder can read the content. */
export type SharedWhisper = WhisperCapability & { code: string }

/**
 * Encrypts data into an envelope with a fresh key (AES-256-GCM). Refuses empty data: its reader would
 * spend a read and could not tell it from a loss.
 *
 * ```ts
 * const sealed = await sealWhisper({ data, name: 'door.txt', mediaType: 'text/plain' })
 * ```
 * @throws MayflyError `nothing to send` for empty data.
 * @throws RangeError for an invalid name, media type, password, key, IV or salt.
 */
export async function sealWhisper(ask: SealWhisper): Promise<SealedWhisper> {
  if (ask.data.length === 0) throw new MayflyError('nothing to send', 0)
  return sealEnvelope(ask)
}

/** The part of a capability that opens the receipt. */
export type ReceiptHolder = Pick<WhisperCapability, 'publicId' | 'receiptToken'>

/**
 * The client of a receipt, and of who is told of each read. Every call rejects with a MayflyError: `not found` if the whisper was bought
 * without one, or ended more than a day ago.
 *
 * ```ts
 * const { state, reads } = await mayfly.whisperReceipt(capability).status()
 * ```
 */
export type ReceiptClient = ReturnType<typeof createReceiptClient>

export function createReceiptClient(http: Http, { publicId, receiptToken }: ReceiptHolder) {
  const calls = callsAt(http, `/api/whisper/${encodeURIComponent(publicId)}`, receiptToken)
  return {
    /** The minutes of the reads, how many are left, and how it ended. Spends no read. */
    status: (options?: CallOptions) =>
      calls.read<WhisperReceipt>('/receipt', ['state', 'reads'], options),
    /** Deletes the bytes at once. Rejects with `not found` if it has ended before. */
    destroy: (options?: CallOptions) => calls.remove('', options),
    ...createAlertsClient(calls, '/receipt/alerts'),
  }
}

export function createWhisperClient<Paid extends PurchaseFromWallet>(
  http: Http,
  payments: Payments,
) {
  async function fetchWhisper(
    text: string,
    options?: CallOptions,
  ): Promise<Uint8Array<ArrayBuffer>> {
    const { publicId, readToken } = codeOf(text)
    // Never repeated: a request whose answer was lost has spent its read.
    return http.getBytes({ path: `/w/${publicId}`, token: readToken, ...options })
  }

  return {
    /**
     * Encrypts data locally and buys reads of it. The share code is returned once: save it.
     * @throws MayflyError like `buyCatch`.
     */
    async buyWhisper(purchase: Paid & WhisperTerms): Promise<SharedWhisper> {
      const sealed = purchase.sealed ?? (await sealWhisper(purchase))
      const { planId } = purchase
      const terms = { ...purchase, revealAt: purchase.revealAt?.toISOString() }
      const opening = { key: base64url(sealed.key), hasPassword: sealed.hasPassword }
      const request = whisperRequest(terms, sealed.envelope)
      const order: Order = { product: 'whisper', planId, whisper: opening, ...request }
      return sharedWhisper(await payments.buy(order, limited(purchase)), opening)
    },

    /**
     * Spends a read and decrypts the content.
     * @throws MayflyError without spending a read: `not revealed` before the reveal time,
     * `password needed`, `invalid share code`, `not found`.
     * @throws UnopenedWhisper after a wrong password: it has the bytes, and opens them with another one.
     */
    async readWhisper(
      text: string,
      password?: string,
      options?: CallOptions,
    ): Promise<OpenedWhisper> {
      const { key, hasPassword } = codeOf(text)
      // Checked before a read is spent on bytes that could not be decrypted.
      if (hasPassword && password === undefined) throw new MayflyError('password needed', 0)
      return openFetched(await fetchWhisper(text, options), key, password)
    },

    /**
     * Spends a read and returns the encrypted bytes. `openWhisper` decrypts them, and can be called
     * again after a wrong password.
     * @throws MayflyError like `readWhisper`.
     */
    fetchWhisper,

    /** The receipt of a whisper that was bought with `receipt: true`: when it was read, and destroying it. */
    whisperReceipt: (holder: ReceiptHolder) => createReceiptClient(http, holder),
  }
}

/**
 * A read was spent, and the bytes do not open: the password is wrong, or they are damaged. The error has them, and
 * `open` tries another password without spending another read.
 *
 * ```ts
 * const { data } = await mayfly.readWhisper(code, 'corect horse').catch((error) => {
 *   if (error instanceof UnopenedWhisper) return error.open('correct horse')
 *   throw error
 * })
 * ```
 */
export class UnopenedWhisper extends UnreadableWhisper {
  override name = 'UnopenedWhisper'
  readonly #ciphertext: Uint8Array<ArrayBuffer>
  readonly #key: Uint8Array
  constructor(ciphertext: Uint8Array<ArrayBuffer>, key: Uint8Array) {
    super()
    this.#ciphertext = ciphertext
    this.#key = key
  }

  /** What was fetched, still encrypted. `openWhisper` takes it with the key of the share code. */
  get ciphertext(): Uint8Array<ArrayBuffer> {
    return this.#ciphertext
  }

  /** Decrypts with this password. @throws UnopenedWhisper if that is another wrong one. */
  open(password?: string): Promise<OpenedWhisper> {
    return openFetched(this.#ciphertext, this.#key, password)
  }
}

async function openFetched(
  ciphertext: Uint8Array<ArrayBuffer>,
  key: Uint8Array,
  password: string | undefined,
): Promise<OpenedWhisper> {
  try {
    return await openWhisper(ciphertext, key, password)
  } catch (error) {
    if (error instanceof UnreadableWhisper) throw new UnopenedWhisper(ciphertext, key)
    throw error
  }
}

/** What was bought, with the code that opens it. */
export function sharedWhisper(
  bought: unknown,
  { key, hasPassword }: Required<PurchaseRecord>['whisper'],
): SharedWhisper {
  const capability = bought as WhisperCapability
  const bytes = base64Bytes(key)
  if (bytes === null) throw new MayflyError('invalid share code', 0)
  return { ...capability, code: formatWhisperCode({ ...capability, key: bytes, hasPassword }) }
}

function codeOf(text: string): WhisperCode {
  const code = parseWhisperCode(text.trim())
  if (!code) throw new MayflyError('invalid share code', 0)
  return code
}
