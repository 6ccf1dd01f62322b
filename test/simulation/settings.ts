/**
 * The settings of a run's service, which its operator changes: the secret, the public address, and what is on sale
 * at which price. A plan's price says which edition of the plans it is of, and so does its limit.
 */
import type { Product } from './buyer.ts'
import type { World } from './world/world.ts'

const SECRETS = { current: '11'.repeat(32), next: '22'.repeat(32) }

const BASE = {
  MAYFLY_LIGHTNING_URL: 'lnd+https://127.0.0.1:1?macaroon=/none&cert=/none',
  MAYFLY_RATE_LIMITS: 'off',
  MAYFLY_DATABASE_URL: 'sqlite:/none/mayfly.db',
  MAYFLY_QUOTE_SECONDS: '60',
  MAYFLY_SWITCH_WAIT_SECONDS: '60',
}

const ADDRESSES = ['http://127.0.0.1:8402', 'http://localhost:8402'] as const

/** What is added to the price of an edition, in satoshis, and to its limit, in requests. */
const FIRST = { catch: { price: 100, limit: 100 }, pulse: { price: 50, limit: 4_500 } } as const
const WHISPER_PRICE = 21

export type Settings = ReturnType<typeof createSettings>

export function createSettings({ world }: { world: World }) {
  const { random } = world.scheduler
  const off = new Set<Product>()
  const wasOff = new Set<Product>()
  let edition = 0
  let address: string = ADDRESSES[0]
  let hasNewSecret = false
  let hasGate = false
  return {
    /** What a process that starts now is given. */
    environment: (): Record<string, string> => ({
      ...BASE,
      ...(hasGate ? { MAYFLY_GATE: 'on' } : {}),
      MAYFLY_BASE_URL: address,
      MAYFLY_SECRET: hasNewSecret ? `${SECRETS.next},${SECRETS.current}` : SECRETS.current,
    }),
    catalog: () => ({
      catch: {
        spark: {
          priceSats: FIRST.catch.price + edition,
          requestLimit: FIRST.catch.limit + edition,
          available: !off.has('catch'),
        },
      },
      pulse: {
        spark: {
          priceSats: FIRST.pulse.price + edition,
          heartbeatLimit: FIRST.pulse.limit + edition,
          available: !off.has('pulse'),
        },
      },
      whisper: { spark: { priceSats: WHISPER_PRICE + edition, available: !off.has('whisper') } },
    }),
    changePlans(): string {
      edition++
      off.clear()
      if (random.chance(0.4)) {
        const product = random.pick(['catch', 'pulse', 'whisper'] as const)
        off.add(product)
        wasOff.add(product)
      }
      return `edition ${edition} of the plans, without ${[...off]}`
    },
    /** Puts every plan on sale again. */
    sellAll: (): void => off.clear(),
    /** Sells GATE from the next start on. Its projects know the address, which stays then. */
    openGate(): void {
      hasGate = true
    },
    changeAddress(): string {
      if (!hasGate) address = address === ADDRESSES[0] ? ADDRESSES[1] : ADDRESSES[0]
      return address
    },
    /** The first of the two steps of docs/run/operate.md. The second one waits until no order of before is left. */
    changeSecret(): void {
      hasNewSecret = true
    },
    /** Whether a buyer could have found this product off sale. */
    wasOff: (product: Product): boolean => wasOff.has(product),
  }
}

/** The edition that a price or a limit of the plan `spark` is of. */
export const editionOf = {
  price: (product: 'catch' | 'pulse', sats: number): number => sats - FIRST[product].price,
  limit: (product: 'catch' | 'pulse', limit: number): number => limit - FIRST[product].limit,
}
