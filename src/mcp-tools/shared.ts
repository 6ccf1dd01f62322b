/** The parts of inputs and results that several tools have. */
import { type TOptional, type TUnsafe, Type } from 'typebox'
import {
  EVENT_FILTERS,
  FILTER_NAMES,
  type FilterName,
  type FilterValue,
} from '../lib/event-filters.ts'
import { PLAN_IDS, PRODUCT_NAMES } from '../lib/product-names.ts'
import type { Way } from './definition.ts'
import { DEFAULT_TEXT_BYTES, MAX_TEXT_BYTES } from './stranger.ts'

export const DateTime = Type.String({ format: 'date-time' })
export const DateTimeOrNull = Type.Union([DateTime, Type.Null()])
export const Count = Type.Integer({ minimum: 0 })
export const PlanId = Type.Enum([...PLAN_IDS])
export const Product = Type.Enum(PRODUCT_NAMES)
export const Network = Type.Enum(['mainnet', 'regtest', 'signet'])

const publicId = (of: string) =>
  Type.String({ minLength: 1, maxLength: 64, description: `The public id of the ${of}` })

/** The name of something that is saved on this machine. */
export const savedName = (description: string) =>
  Type.String({
    minLength: 1,
    maxLength: 63,
    pattern: '^[a-z0-9][a-z0-9._-]*$',
    description,
  })

/** What a call is about: where tokens are saved, a saved name, and else an id. */
export const which = (way: Way, of: string) =>
  way === 'local'
    ? { name: savedName(`The name under which the ${of} is saved`) }
    : { publicId: publicId(of) }

/** What names a purchase, so that a repeated call pays nothing twice. */
export const purchaseName = (way: Way) =>
  way === 'local'
    ? {
        name: savedName(
          'A new name to save it under, such as hooks. The same name repeats a purchase, and never pays twice',
        ),
      }
    : { purchaseId }

/**
 * The token as an argument, on the only way in that takes it there.
 * @param kind what it begins with, such as `catch_owner`.
 */
export const tokenArgument = (way: Way, kind: string) =>
  way === 'visible'
    ? {
        token: Type.Optional(
          Type.String({ maxLength: 128, description: `The ${kind}_… token, a secret` }),
        ),
      }
    : {}

/** Where the token of a call goes, for the descriptions. */
export const tokenNote = (kind: string): Partial<Record<Way, string>> => ({
  remote: `Needs the ${kind}_… token, in _meta["${TOKEN_META}"] of the call or as the bearer of the connection. Never put it into an argument.`,
  visible: `Needs the ${kind}_… token as the argument "token".`,
})

/** In `_meta` of a call: the token that it needs. */
export const TOKEN_META = 'org.mayfly/token'
/** In `_meta` of a result: the capability that was bought, with its tokens. */
export const CAPABILITY_META = 'org.mayfly/capability'

/** Names a purchase, so that it can be repeated. */
const purchaseId = Type.Optional(
  Type.String({
    minLength: 22,
    maxLength: 64,
    pattern: '^[0-9A-Za-z-]+$',
    description: 'Of a purchase that was begun: repeats it. Leave it out for a new purchase',
  }),
)

export const maxTextBytes = Type.Optional(
  Type.Integer({
    minimum: 64,
    maximum: MAX_TEXT_BYTES,
    default: DEFAULT_TEXT_BYTES,
    description: 'Cuts each text that a stranger wrote to this many bytes',
  }),
)

/** The filters that reading and waiting have in common. */
export const eventFilters = Object.fromEntries(
  FILTER_NAMES.map((name) => [
    name,
    Type.Optional(EVENT_FILTERS[name].schema as object as TUnsafe<string>),
  ]),
) as { [Name in FilterName]: TOptional<TUnsafe<FilterValue<Name>>> }
