/**
 * A tool, and what a way in gives it. `/mcp` of the service and `mayfly mcp` differ in three things alone: how requests
 * are made, who pays, and where tokens are.
 */
import type { TSchema } from 'typebox'
import { EVENT_FILTERS, FILTER_NAMES } from '../lib/event-filters.ts'
import { only, orNull, Type } from '../lib/json-schema.ts'
import { PLAN_IDS, type PlanId, type Product } from '../lib/product-names.ts'
import type { Api } from './answers.ts'

/**
 * Where the tokens are. `local`: saved by `mayfly mcp` on the user's machine, under a name. `results`: in results and
 * arguments of `/mcp`, which every host passes on. `meta`: beside them in `_meta`, for hosts that keep it.
 */
export type Way = 'local' | 'results' | 'meta'

type Described = {
  name: string
  title: string
  description(way: Way): string
  /** What a host can decide by whether to ask its user. Left out is false. */
  hints: { reads?: true; destroys?: true; repeatable?: true; open?: true }
  /** The arguments. Those that name what a `HeldTool` is about come besides, and are needed. */
  input(way: Way): Record<string, TSchema>
  /** The arguments that a call must have, where this way in has them. Default: none. */
  needs?: readonly string[]
  /** The structured content. Left out where all that there is to read is text, which then comes once. */
  output?: TSchema
}

/** A tool for something that was bought, of a product that `about` names, by the token that it takes. */
export type HeldTool = Described & {
  about: Roles
  run(context: Context & { held: Held }): Promise<Done>
}

export type Tool = HeldTool | (Described & { about?: never; run(context: Context): Promise<Done> })

/** A value is also said as text, line by line: a host may pass on only one of both. A text is all that there is. */
export type Done =
  | { text: string; value?: never; meta?: never }
  | { text?: never; value: Record<string, unknown>; meta?: object | undefined }

export type Context = {
  way: Way
  /** Checked against `input`. */
  args: Record<string, unknown>
  /** The service, asked without a token. */
  api: Api
  pay: Pay
  secrets: Secrets
  /** Monotonic milliseconds. */
  monotonic(): number
  /** Tells the host that the call is under way, if it wants to know. */
  progress(message: string): Promise<void>
}

export type Role = 'owner' | 'ingest' | 'ping' | 'read' | 'receipt'
/** Which token of which product a tool takes. */
export type Roles = Partial<Record<Product, Role>>

type Secrets = {
  /** What the call is about, with the token for it. @throws Refusal if it is missing, or of another product. */
  find(roles: Roles): Promise<Held>
  /** The ingest token of an inbox of the user, for its alerts. */
  alertInbox(given: { inbox: string; ingestToken?: string }): { inbox: string; ingestToken: string }
  /** Spends a read of a whisper. */
  readWhisper(): Promise<Brought>
  /**
   * Asks the person about what cannot be undone, where somebody can. Ends the call if the person does not agree.
   * `byHand`: how the person does it where nobody can be asked; the call ends with it then.
   */
  confirm(question: string, held: Held, byHand?: string): Promise<void>
}

/** What a read has brought. `mayfly mcp` opens it, and `/mcp` has no key. */
export type Brought =
  | { ciphertext: Uint8Array }
  | { text: string | null; bytes: number; fileName: string | null; mediaType: string | null }

/** All events up to a number, and these beyond it, before which a filter has passed over others. */
export type Seen = { upTo: number; beyond: ReadonlySet<number> }

/** Something that was bought. The service is asked with the token for it. */
export type Held = Api & {
  product: Product
  publicId: string
  /** Of its HTTP interface. */
  path: string
  /** The service that sold it. */
  origin: string
  /** What the caller calls it. */
  label: string
  /** Which of its events were handed over. Left out where nobody keeps that. */
  seen?(): Seen
  /** Handed over: these, and with `upTo` all that there were up to it. */
  saw?(sequences: readonly number[], upTo: number | null): void
  /** Saves a new token; without one, sees that it could be. Left out where the caller keeps it. */
  keep?(role: Role, token?: string): void
  /** Forgets what was destroyed. */
  forget?(): void
}

export type Wanted = {
  product: Product
  planId: PlanId
  /** The settings that a monitor is bought with, as the service takes them. */
  settings?: Record<string, unknown>
}

export type Pay = {
  buy(wanted: Wanted): Promise<Sale>
  extend(): Promise<Sale>
  /** Collects what was paid, and pays nothing. */
  check(): Promise<Sale>
}

type Quote = Record<string, unknown>
const QUOTED = ['orderId', 'product', 'planId', 'amountSats', 'bolt11', 'paymentHash', 'expiresAt']

/** What is to be paid, in an answer of the service. */
export const quoteIn = (answer: object): Quote => pick(answer, [...QUOTED, 'network'])

/** What became of a purchase. `named` repeats it. */
export type Sale = {
  named: { name?: string; purchaseId?: string }
  meta?: object
  /** What is said before how to go on. */
  note?: string
} & (
  | { state: 'unpaid'; quote?: Quote }
  | {
      state: 'bought'
      product: Product
      publicId: string
      expiresAt: string
      origin: string
      /** What the caller has to keep: tokens, or the code of a whisper. */
      secrets: Record<string, string>
    }
  | { state: 'extended'; expiresAt: string }
)

/** In `_meta` of a call: the token that it needs. Of `rotate_token`: the new one. */
export const TOKEN_META = 'org.mayfly/token'
/** In `_meta` of a result: the capability that was bought, with its tokens. */
export const CAPABILITY_META = 'org.mayfly/capability'

// The parts of inputs and outputs that several tools have.

export const DateTime = Type.String()
export const DateTimeOrNull = orNull(DateTime)
export const Count = Type.Integer()
export const planId = Type.Enum([...PLAN_IDS])

/** An object of these members alone, of which those that are needed must be there. */
export const objectOf = (members: Record<string, TSchema>, needed: readonly string[]): TSchema =>
  only(
    Object.fromEntries(
      Object.entries(members).map(([name, schema]) => [
        name,
        needed.includes(name) ? schema : Type.Optional(schema),
      ]),
    ),
  )

/** The name of something that is saved on this machine. The vault says what a name is. */
export const savedName = (description: string) => Type.String({ maxLength: 64, description })

export const NOUNS: Record<Product, string> = {
  catch: 'inbox',
  pulse: 'monitor',
  whisper: 'whisper',
}

/** `inbox, monitor, or whisper`. */
export const oneOf = (names: readonly string[]): string => DISJUNCTION.format(names)
const DISJUNCTION = new Intl.ListFormat('en', { type: 'disjunction' })

/** What names what a tool is about, with its token where the model passes it on. */
export function about(way: Way, roles: Roles): Record<string, TSchema> {
  const taken = Object.entries(roles) as [Product, Role][]
  const noun = oneOf(taken.map(([product]) => NOUNS[product]))
  if (way === 'local') return { name: savedName(`the name that the ${noun} is saved under`) }
  const publicId = Type.String({ maxLength: 64, description: `the id of the ${noun}` })
  if (way === 'meta') return { publicId }
  const tokens = oneOf(taken.map(([product, role]) => `${product}_${role}_…`))
  const token = Type.String({ maxLength: 128, description: `its ${tokens} token` })
  return { publicId, token }
}

/** What names a purchase, so that a repeated call pays nothing twice. */
export const purchaseName = (way: Way): Record<string, TSchema> =>
  way === 'local'
    ? {
        name: Type.String({
          minLength: 1,
          maxLength: 63,
          pattern: '^[a-z0-9][a-z0-9._-]*$',
          description:
            'a new name of lower-case letters, digits, dots and dashes; the same one repeats a purchase',
        }),
      }
    : {
        purchaseId: Type.String({
          minLength: 22,
          maxLength: 64,
          pattern: '^[0-9A-Za-z-]+$',
          description: 'the purchaseId of a result, to repeat that purchase; none for a new one',
        }),
      }

/** The filters that reading and waiting have in common. */
export const eventFilters: Record<string, TSchema> = Object.fromEntries(
  FILTER_NAMES.map((name) => {
    const { examples, ...schema } = EVENT_FILTERS[name].schema
    return [name, schema as TSchema]
  }),
)

export const text = (value: unknown): string => (typeof value === 'string' ? value : '')

/** These members of a value, if they are there. */
export const pick = (from: object, names: readonly string[]): Record<string, unknown> =>
  Object.fromEntries(
    names.flatMap((name) => {
      const value = (from as Record<string, unknown>)[name]
      return value === undefined ? [] : [[name, value]]
    }),
  )
