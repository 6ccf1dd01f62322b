/** The tools that buy. They share one result: what is to be paid, or what was bought. */
import { type Static, Type } from 'typebox'
import { PLAN_IDS } from '../lib/product-names.ts'
import { MAX_CIPHERTEXT_BYTES } from './bounds.ts'
import { describe, type ToolAnnotations, type ToolDefinition, type Way } from './definition.ts'
import {
  CAPABILITY_META,
  DateTime,
  Network,
  PlanId,
  Product,
  purchaseName,
  savedName,
  tokenArgument,
  tokenNote,
  which,
} from './shared.ts'

export const Quote = Type.Object(
  {
    orderId: Type.String({ description: 'For check_order' }),
    product: Product,
    planId: PlanId,
    amountSats: Type.Integer({ minimum: 1 }),
    bolt11: Type.String({ description: 'The Lightning invoice to pay' }),
    paymentHash: Type.String(),
    expiresAt: DateTime,
    network: Network,
  },
  { additionalProperties: false },
)
export type Quote = Static<typeof Quote>

const bought = {
  product: Product,
  publicId: Type.String(),
  expiresAt: DateTime,
  url: Type.Optional(Type.String({ description: 'Of an inbox: give it to the sender' })),
}
const tokens = {
  ownerToken: Type.Optional(Type.String()),
  ingestToken: Type.Optional(Type.String()),
  pingToken: Type.Optional(Type.String()),
  readToken: Type.Optional(Type.String()),
  receiptToken: Type.Optional(Type.String()),
}

/** On this machine the code of a whisper is saved, and only shown where its user has asked for it. */
const shareCode = {
  code: Type.Optional(
    Type.String({ description: 'Opens the whisper: a secret for its reader alone' }),
  ),
}

/** Without tokens, except for a connection that asked for them. */
const boughtOn = (way: Way) =>
  Type.Object(
    { ...bought, ...(way === 'visible' ? tokens : {}), ...(way === 'local' ? shareCode : {}) },
    { additionalProperties: false },
  )

/** What an extension answers instead of tokens: those that there are stay as they were. */
const extended = {
  extended: Type.Optional(
    Type.Object(
      { expiresAt: DateTime },
      { additionalProperties: false, description: 'What was extended lasts until then' },
    ),
  ),
}

const resultOn = (way: Way, more: Partial<typeof extended> = {}) =>
  Type.Object(
    {
      state: Type.Enum(['payment required', 'settled']),
      ...(way === 'local'
        ? { name: savedName('The name of this purchase') }
        : {
            purchaseId: Type.Optional(
              Type.String({
                description: 'Names this purchase. Repeat the call with it, and pay once',
              }),
            ),
          }),
      quote: Type.Optional(Quote),
      bought: Type.Optional(boughtOn(way)),
      ...more,
      next: Type.String({ description: 'What to do now' }),
    },
    { additionalProperties: false },
  )

/** What a purchase answers: `quote` while it is unpaid, `bought` or `extended` after. */
export type PurchaseResult = {
  state: 'payment required' | 'settled'
  /** Of the remote way in. */
  purchaseId?: string
  /** Of the local way in. */
  name?: string
  quote?: Quote
  bought?: { product: string; publicId: string; expiresAt: string; url?: string; code?: string } & {
    [token in keyof typeof tokens]?: string
  }
  extended?: { expiresAt: string }
  next: string
}

const REMOTE = `Without a payment the result has the invoice and a purchaseId. Pay it once, then either repeat the call with the same arguments, that purchaseId and the credential in _meta["org.paymentauth/credential"], or call check_order.`

const paying: Partial<Record<Way, string>> = {
  local:
    'Pays by itself from the wallet of this machine, within its limits, and saves the tokens under a name. Without a wallet the result has the invoice: it is for the user to pay, and check_order collects it then. If an answer is lost, repeat the same call with the same name.',
  remote: `${REMOTE} The tokens come in _meta["${CAPABILITY_META}"] of the result. If an answer is lost, repeat the same call; never pay twice.`,
  visible: `${REMOTE} The result then has the tokens, which are secrets: save them at once, and show them to nobody. If an answer is lost, repeat the same call; never pay twice.`,
}

/** It moves money; with its purchaseId it moves it once. */
const BUYING: ToolAnnotations = {
  readOnlyHint: false,
  destructiveHint: false,
  idempotentHint: false,
  openWorldHint: true,
}

const selection = (way: Way) =>
  Type.Object({ planId: PlanId, ...purchaseName(way) }, { additionalProperties: false })

export const buyInboxTool = (way: Way): ToolDefinition<'buy_inbox'> => ({
  name: 'buy_inbox',
  title: 'Buy a webhook inbox',
  description: describe(way, {
    all: 'Buys a temporary webhook inbox: a public URL that stores every HTTP request sent to it.',
    ...paying,
  }),
  annotations: BUYING,
  inputSchema: selection(way),
  outputSchema: resultOn(way),
})

export const buyMonitorTool = (way: Way): ToolDefinition<'buy_monitor'> => ({
  name: 'buy_monitor',
  title: 'Buy a heartbeat monitor',
  description: describe(way, {
    all: 'Buys a temporary heartbeat monitor, which is late when a job stops to ping it.',
    ...paying,
  }),
  annotations: BUYING,
  inputSchema: selection(way),
  outputSchema: resultOn(way),
})

const OWNED = 'catch_owner_… or pulse_owner'

export const extendTool = (way: Way): ToolDefinition<'extend'> => ({
  name: 'extend',
  title: 'Extend an inbox or a monitor',
  description: describe(way, {
    all: 'Buys the plan of an inbox or a monitor once more, before it ends: its time and its limits are added, and its address and tokens stay. What has ended, is used up or is suspended cannot be extended.',
    local:
      'Pays by itself from the wallet of this machine, within its limits. Without a wallet the result has the invoice: it is for the user to pay, and check_order collects it then. If an answer is lost, repeat the same call with the same expiresAt: nothing is paid twice.',
    remote: `${REMOTE} If an answer is lost, repeat the same call; never pay twice. If it ends before it is paid, a new one is sold in its place, to the credential alone. ${tokenNote(OWNED).remote}`,
    visible: `${REMOTE} If an answer is lost, repeat the same call; never pay twice. If it ends before it is paid, a new one is sold in its place, to the credential alone. ${tokenNote(OWNED).visible}`,
  }),
  annotations: BUYING,
  inputSchema: Type.Object(
    way === 'local'
      ? {
          ...which(way, 'inbox or monitor'),
          expiresAt: Type.String({
            format: 'date-time',
            maxLength: 64,
            description:
              'When it ends now, as its purchase, check_order or monitor_status tells. Once it lasts longer than that, the call pays nothing',
          }),
        }
      : {
          ...which(way, 'inbox or monitor'),
          planId: Type.Enum([...PLAN_IDS], { description: 'The plan that it was bought with' }),
          ...purchaseName(way),
          ...tokenArgument(way, 'catch_owner or pulse_owner'),
        },
    { additionalProperties: false },
  ),
  outputSchema: resultOn(way, extended),
})

const whisperOptions = (way: Way) => ({
  planId: PlanId,
  readLimit: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 402, description: 'How often it can be read' }),
  ),
  revealAt: Type.Optional(
    Type.String({ maxLength: 64, description: 'Nobody can read it before: RFC 3339' }),
  ),
  receipt: Type.Optional(
    Type.Boolean({ description: 'Whether its buyer can see when it was read, and destroy it' }),
  ),
  revealWhen: Type.Optional(
    way === 'local'
      ? Type.String({
          maxLength: 63,
          pattern: '^(?:pulse_switch_[0-9A-Za-z]{22}|[a-z0-9][a-z0-9._-]*)$',
          description:
            'Nobody can read it before this monitor falls silent: the name of a saved one that is pinged in time, or the pulse_switch_… id of another. It comes with a receipt',
        })
      : Type.String({
          maxLength: 63,
          pattern: '^pulse_switch_[0-9A-Za-z]{22}$',
          description:
            'Nobody can read it before the monitor of this switch falls silent. It comes with a receipt',
        }),
  ),
})

const ciphertext = Type.String({
  minLength: 40,
  maxLength: Math.ceil(MAX_CIPHERTEXT_BYTES / 3) * 4,
  pattern: '^[A-Za-z0-9+/]+={0,2}$',
  description: 'Base64 of bytes that were encrypted before the call. The service never has the key',
})

export const sendWhisperTool = (way: Way): ToolDefinition<'send_whisper'> => ({
  name: 'send_whisper',
  title: 'Send a secret',
  description: describe(way, {
    all: 'Buys a whisper: encrypted bytes that a reader can fetch a limited number of times.',
    ...paying,
    local: `Encrypts the text on this machine. ${paying.local} The code that opens it is saved too, and the user sees it with: mayfly show NAME --reveal`,
    remote: `This way in does not encrypt: send ciphertext, never a plain secret. ${paying.remote}`,
    visible: `This way in does not encrypt: send ciphertext, never a plain secret. ${paying.visible}`,
  }),
  annotations: BUYING,
  inputSchema: Type.Object(
    way === 'local'
      ? {
          ...whisperOptions(way),
          ...purchaseName(way),
          text: Type.String({ minLength: 1, maxLength: 64 * 1024 }),
        }
      : { ...whisperOptions(way), ...purchaseName(way), ciphertextBase64: ciphertext },
    { additionalProperties: false },
  ),
  outputSchema: resultOn(way),
})

export const checkOrderTool = (way: Way): ToolDefinition<'check_order'> => ({
  name: 'check_order',
  title: 'Check an order',
  description: describe(way, {
    all: 'Tells whether an order is paid, and hands over what was bought. Ask about once a second.',
    local: 'Pays nothing. What was bought is saved under its name.',
    remote: `The tokens come in _meta["${CAPABILITY_META}"], and with the purchaseId can be fetched again until one of them is used.`,
    visible: 'With the purchaseId, the tokens can be fetched again until one of them is used.',
  }),
  annotations: {
    readOnlyHint: false,
    destructiveHint: false,
    idempotentHint: true,
    openWorldHint: true,
  },
  inputSchema: Type.Object(
    way === 'local'
      ? { name: savedName('The name of the purchase') }
      : {
          orderId: Type.String({ minLength: 1, maxLength: 64, description: 'Of the quote' }),
          ...purchaseName(way),
        },
    { additionalProperties: false },
  ),
  outputSchema: resultOn(way, extended),
})
