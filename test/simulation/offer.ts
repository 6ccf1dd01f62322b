/** What a buyer is offered, and the keys under which buyers ask. */
import type { Run } from './run-context.ts'
import { uuidV4 } from './world/globals.ts'
import type { Answer } from './world/service.ts'

export type Quote = {
  paymentHash: string
  bolt11: string
  amountSats: number
  orderId: string | null
}

/** The quote of a 402. Null for that of a poll, which says only that it is not settled yet. */
export function offerIn({ text }: Answer): Quote | null {
  const parsed = JSON.parse(text) as Record<string, string>
  if (parsed.paymentHash === undefined) return null
  return {
    paymentHash: String(parsed.paymentHash),
    bolt11: String(parsed.bolt11 ?? parsed.invoice),
    amountSats: Number(parsed.amountSats),
    orderId: parsed.orderId ?? null,
  }
}

export const isRandom = (key: string): boolean => !key.startsWith('purchase-')

/** Mostly random; some clients number their purchases. */
export function keyOf(run: Run, who: string): string {
  const { random } = run.world.scheduler
  return random.chance(run.weather.guessable)
    ? `purchase-${who.replaceAll(/\W/g, '-')}-${random.int(1, 50)}`
    : uuidV4()
}
