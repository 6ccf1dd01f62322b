/** The tools that buy, and how they say what is to be paid and what was bought. */
import type { TSchema } from 'typebox'
import { isObject } from '../lib/json.ts'
import { Type } from '../lib/json-schema.ts'
import {
  isPlanId,
  PLAN_IDS,
  type PlanId,
  PRODUCT_NAMES,
  type Product,
} from '../lib/product-names.ts'
import { monitorSettings, settingsIn } from './monitor.ts'
import { said } from './strangers.ts'
import {
  about,
  CAPABILITY_META,
  type Context,
  Count,
  DateTime,
  type Done,
  planId,
  purchaseName,
  type Sale,
  savedName,
  type Tool,
  type Wanted,
  type Way,
} from './tool.ts'

/** The longest ciphertext that a call carries: a model's context is small. Longer ones go over HTTP. */
export const MAX_CIPHERTEXT_BYTES = 32 * 1024

/** What a seller writes about its plans is a stranger's text, which a host reads before each purchase. */
const MAX_LABEL_CHARS = 120

/** The limits that the plans of a product have. */
const PLAN_LIMITS = {
  catch: ['requestLimit', 'storageLimitBytes', 'maxBytesPerRequest'],
  whisper: ['readLimit', 'maxCiphertextBytes'],
  pulse: ['heartbeatLimit', 'suggestedCadenceSeconds', 'minimumGraceSeconds'],
} as const

export const CATALOG: Tool = {
  name: 'catalog',
  title: 'List plans and prices',
  description: () =>
    'The plans of webhook inboxes (catch), encrypted secrets (whisper) and heartbeat monitors (pulse), with prices and limits. Costs nothing.',
  hints: { reads: true, repeatable: true },
  input: () => ({}),
  output: Type.Object({
    checkoutEnabled: Type.Boolean(),
    plans: Type.Array(
      Type.Object(
        { product: Type.Enum(PRODUCT_NAMES), planId, priceSats: Count, duration: Type.String() },
        { description: 'And the limits of each' },
      ),
    ),
  }),
  async run({ api }) {
    const { checkoutEnabled, products } = await api.json('GET', '/api/catalog')
    const plans = PRODUCT_NAMES.flatMap((product) => {
      const entry = isObject(products) ? products[product] : undefined
      const listed = isObject(entry) && Array.isArray(entry.plans) ? entry.plans : []
      const sold = listed.filter(isObject).filter((plan) => isPlanId(plan.planId))
      return sold.slice(0, PLAN_IDS.length).map((plan) => ({
        product,
        planId: plan.planId,
        priceSats: Number(plan.priceSats),
        available: plan.available === true,
        duration: said(plan.durationLabel, MAX_LABEL_CHARS),
        bestFor: said(plan.bestFor, MAX_LABEL_CHARS),
        ...Object.fromEntries(PLAN_LIMITS[product].map((limit) => [limit, Number(plan[limit])])),
      }))
    })
    return { value: { checkoutEnabled: checkoutEnabled === true, plans } }
  },
}

const SALE = Type.Object({
  state: Type.Enum(['payment required', 'settled']),
  name: Type.Optional(Type.String()),
  purchaseId: Type.Optional(Type.String()),
  quote: Type.Optional(
    Type.Object({ orderId: Type.String(), amountSats: Count, bolt11: Type.String() }),
  ),
  bought: Type.Optional(
    Type.Object({
      product: Type.Enum(PRODUCT_NAMES),
      publicId: Type.String(),
      expiresAt: DateTime,
      url: Type.Optional(Type.String({ description: 'Of an inbox' })),
    }),
  ),
  extended: Type.Optional(Type.Object({ expiresAt: DateTime })),
  next: Type.String(),
})

const paidBy = (way: Way): string =>
  way === 'local'
    ? 'Pays from the wallet of this machine within its limits. Without a wallet the result has the invoice for the user.'
    : 'The result has an invoice: pay it once, then call check_order.'

/** Where the tokens of a connection are. */
const TOKENS: Record<Way, { described: string; unpaid: string; save: string }> = {
  local: { described: 'The tokens are saved.', unpaid: '', save: '' },
  results: {
    described: 'What is bought comes with its tokens, which are secrets.',
    unpaid:
      ' What you buy comes with its tokens in the result, and this chat then holds them: whoever can read it can use them. A host that keeps _meta can connect with ?tokens=meta instead.',
    save: 'Save the tokens now: they cannot be fetched again after their first use. ',
  },
  meta: {
    described: `What is bought comes with its tokens in _meta["${CAPABILITY_META}"].`,
    unpaid: ` Its tokens come in _meta["${CAPABILITY_META}"] alone, as you connected with ?tokens=meta. If your host drops _meta, connect without it before you pay.`,
    save: `The tokens are in _meta["${CAPABILITY_META}"] of this result. Save them now: they cannot be fetched again after their first use. `,
  },
}

const repeatedBy = (way: Way): string =>
  way === 'local'
    ? 'If an answer is lost, repeat the same call: nothing is paid twice.'
    : 'A repeat with its purchaseId pays nothing twice.'
const buying = (way: Way): string => `${paidBy(way)} ${TOKENS[way].described} ${repeatedBy(way)}`

const BUYING = { open: true } as const

export const BUY_INBOX: Tool = {
  name: 'buy_inbox',
  title: 'Buy a webhook inbox',
  description: (way) =>
    `Buys an address that stores every HTTP request sent to it, for its owner alone. ${buying(way)}`,
  hints: BUYING,
  input: (way) => ({ planId, ...purchaseName(way) }),
  needs: ['planId', 'name'],
  output: SALE,
  run: (context) => bought(context, { product: 'catch' }),
}

export const BUY_MONITOR: Tool = {
  name: 'buy_monitor',
  title: 'Buy a heartbeat monitor',
  description: (way) =>
    `Buys a monitor that is late when a job stops pinging it, set up for the job by an interval or cron. It comes with the line to put into the job. ${buying(way)}`,
  hints: BUYING,
  input: (way) => ({ planId, ...monitorSettings, ...purchaseName(way) }),
  needs: ['planId', 'name'],
  output: SALE,
  async run(context) {
    const settings = settingsIn(context.args)
    const isSet = Object.keys(settings).length > 0
    return bought(context, { product: 'pulse', ...(isSet && { settings }) })
  },
}

const ciphertext = Type.String({
  minLength: 40,
  maxLength: Math.ceil(MAX_CIPHERTEXT_BYTES / 3) * 4,
  pattern: '^[A-Za-z0-9+/]+={0,2}$',
  description: 'base64 of 30 bytes or more that were encrypted before the call',
})

export const SEND_WHISPER: Tool = {
  name: 'send_whisper',
  title: 'Send a secret',
  description: (way) =>
    `Buys reads of a secret. ${
      way === 'local'
        ? 'Encrypts the text here; the result has the code that opens it.'
        : 'Takes ciphertext alone: never send a plain secret.'
    } ${buying(way)}`,
  hints: BUYING,
  input: (way): Record<string, TSchema> => ({
    planId,
    ...(way === 'local'
      ? { text: Type.String({ minLength: 1, maxLength: 64 * 1024 }) }
      : { ciphertextBase64: ciphertext }),
    readLimit: Type.Integer({ minimum: 1, maximum: 402, description: 'How often it can be read' }),
    revealAt: Type.String({
      maxLength: 64,
      description: 'Nobody can read it before this time, RFC 3339',
    }),
    receipt: Type.Boolean({ description: 'Whether you can see when it was read, and destroy it' }),
    revealWhen: Type.String({
      maxLength: 63,
      pattern: `^(?:pulse_switch_[0-9A-Za-z]{22}${way === 'local' ? '|[a-z0-9][a-z0-9._-]*' : ''})$`,
      description: `${way === 'local' ? 'the name of a saved monitor, or ' : ''}a pulse_switch_… id: nobody can read it before that monitor falls silent`,
    }),
    ...purchaseName(way),
  }),
  needs: ['planId', 'text', 'ciphertextBase64', 'name'],
  output: SALE,
  run: (context) => bought(context, { product: 'whisper' }),
}

async function bought({ args, pay, way }: Context, wanted: Omit<Wanted, 'planId'>): Promise<Done> {
  return soldAs(way, await pay.buy({ ...wanted, planId: args.planId as PlanId }))
}

export const EXTEND: Tool = {
  name: 'extend',
  title: 'Extend an inbox or a monitor',
  description: (way) =>
    `Buys the plan of an inbox or a monitor once more, before it ends. Its address and tokens stay. ${paidBy(way)} ${repeatedBy(way)}`,
  hints: BUYING,
  input: (way): Record<string, TSchema> => ({
    ...about(way, { catch: 'owner', pulse: 'owner' }),
    ...(way === 'local'
      ? {
          expiresAt: Type.String({
            format: 'date-time',
            maxLength: 64,
            description: 'When it ends now. If it lasts longer already, nothing is paid',
          }),
        }
      : { planId, ...purchaseName(way) }),
  }),
  needs: ['name', 'expiresAt', 'publicId', 'planId'],
  output: SALE,
  run: async ({ pay, way }) => soldAs(way, await pay.extend()),
}

export const CHECK_ORDER: Tool = {
  name: 'check_order',
  title: 'Collect a purchase',
  description: (way) =>
    way === 'local'
      ? 'Collects what was paid elsewhere, and says what is saved under a name. Pays nothing.'
      : 'Says whether an invoice is paid, and hands over what it bought, until one of its tokens is used. Ask once a second.',
  hints: { repeatable: true, open: true },
  input: (way): Record<string, TSchema> =>
    way === 'local'
      ? { name: savedName('the name of the purchase') }
      : {
          orderId: Type.String({ minLength: 1, maxLength: 64, description: 'Of the quote' }),
          purchaseId: Type.String({ maxLength: 64, description: 'Of the same result' }),
        },
  needs: ['name', 'orderId'],
  output: SALE,
  run: async ({ pay, way }) => soldAs(way, await pay.check()),
}

/** A sale as a result. */
function soldAs(way: Way, sale: Sale): Done {
  const { named, meta, note = '' } = sale
  if (sale.state === 'unpaid') {
    const { quote } = sale
    // Where the tokens will be is said before any money moves.
    const next = note + (quote ? TOKENS[way].unpaid : '')
    return {
      value: { ...named, state: 'payment required', ...(quote ? { quote } : {}), next },
      meta,
    }
  }
  if (sale.state === 'extended') {
    const { expiresAt } = sale
    const next = `${note}It lasts until ${expiresAt}, with the address and the tokens that it had.`
    return { value: { ...named, state: 'settled', extended: { expiresAt }, next }, meta }
  }
  const { product, publicId, expiresAt, origin, secrets } = sale
  const sold = { product, publicId, expiresAt }
  const bought = {
    ...sold,
    ...(product === 'catch' ? { url: `${origin}/c/${publicId}` } : {}),
    ...(way === 'meta' ? {} : secrets),
  }
  const next = note + TOKENS[way].save + NEXT[product](way, sale)
  return {
    value: { ...named, state: 'settled', bought, next },
    meta: way === 'meta' ? { ...meta, [CAPABILITY_META]: { ...sold, ...secrets } } : meta,
  }
}

type Bought = Extract<Sale, { state: 'bought' }>

const NEXT: Record<Product, (way: Way, sale: Bought) => string> = {
  catch: (way) =>
    `Give the url to the sender, then call wait_for_webhook with ${
      way === 'local' ? 'this name' : 'this publicId and the ownerToken'
    }.`,
  pulse: (way, { origin, publicId, secrets, named }) => {
    const token = (way === 'results' && secrets.pingToken) || 'PING_TOKEN'
    const line = `curl -fsS -m 10 --retry 3 -X POST -H "Authorization: Bearer ${token}" ${origin}/p/${publicId}`
    const job =
      way === 'local'
        ? `Let the job run by: mayfly pulse run ${named.name} -- JOB. Elsewhere add to its end what the user gets from: mayfly export ${named.name} --ping-only --as curl`
        : `Add this line to the end of the job: ${line}\nWhere the command line is installed, run the job by: mayfly pulse run NAME -- JOB`
    return `${job}\nNobody is alerted when it is late until alerts are set: call configure_monitor.`
  },
  whisper: (way, { secrets, named, origin }) => {
    if (way !== 'local') return 'Hand the readToken and your key to the reader alone.'
    return secrets.code
      ? `Hand the code to its reader alone, who opens it at ${origin}/read.`
      : `The user gets the code for the reader with: mayfly show ${named.name} --reveal`
  },
}
