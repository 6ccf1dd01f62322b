/** The tools that look at, use and end what is saved. */
import { hideTokens } from '../../lib/ids.ts'
import { isPlanId, PLAN_IDS, type PlanId, PRODUCT_NAMES } from '../../lib/product-names.ts'
import { PLAN_LIMITS } from '../../mcp-tools/catalog.ts'
import { escapeSteering } from '../../mcp-tools/stranger.ts'
import { forget, load, loadPing, loadPulse, loadReceipt, type Product } from '../vault/saved.ts'
import { type Asking, confirm } from './confirm.ts'
import type { Call } from './session.ts'

export type Named = { name: string }
export type PingInput = Named & { signal?: 'ping' | 'start' | 'fail'; exitCode?: number }

/** What a seller writes about its plans is a stranger's text, which a host reads before each purchase. */
const MAX_DESCRIPTION_CHARS = 500
const MAX_LABEL_CHARS = 120
const said = (text: unknown, most: number): string =>
  escapeSteering(hideTokens(typeof text === 'string' ? text : '')).slice(0, most)

export async function catalog({ cli }: Call): Promise<object> {
  const { checkoutEnabled, currency, products } = await cli.mayfly().catalog()
  const listed = PRODUCT_NAMES.filter((name) => Object.hasOwn(products, name)).map((name) => {
    const { description, plans } = products[name]
    const sold = plans.filter(({ planId }) => isPlanId(planId)).slice(0, PLAN_IDS.length)
    const shown = sold.map((plan: Record<string, unknown>) => ({
      ...{ planId: plan.planId, priceSats: plan.priceSats, available: plan.available },
      durationLabel: said(plan.durationLabel, MAX_LABEL_CHARS),
      bestFor: said(plan.bestFor, MAX_LABEL_CHARS),
      ...Object.fromEntries(PLAN_LIMITS[name].map((limit) => [limit, plan[limit]])),
    }))
    return [name, { description: said(description, MAX_DESCRIPTION_CHARS), plans: shown }]
  })
  return { checkoutEnabled, currency, products: Object.fromEntries(listed) }
}

export async function ping({ cli }: Call, input: PingInput): Promise<object> {
  const { capability, baseUrl } = loadPing(cli, input.name)
  const monitor = cli.mayfly(baseUrl).pulse(capability)
  if (input.exitCode !== undefined) await monitor.exit(input.exitCode)
  else await monitor[input.signal ?? 'ping']()
  return { recorded: true }
}

export async function monitorStatus({ cli }: Call, { name }: Named): Promise<object> {
  const { capability, baseUrl } = loadPulse(cli, name)
  const status = await cli.mayfly(baseUrl).pulse(capability).status()
  return {
    publicId: status.publicId,
    planId: status.planId as PlanId,
    state: status.state,
    name: said(status.name, MAX_LABEL_CHARS),
    description: said(status.description, MAX_DESCRIPTION_CHARS),
    expectedIntervalSeconds: status.expectedIntervalSeconds,
    graceSeconds: status.graceSeconds,
    remainingHeartbeats: status.remainingHeartbeats,
    lastPingAt: status.lastPingAt,
    nextExpectedAt: status.nextExpectedAt,
    lateAt: status.lateAt,
    stateChangedAt: status.stateChangedAt,
    expiresAt: status.expiresAt,
  }
}

export async function destroy(call: Asking, { name }: Named): Promise<object> {
  const { cli } = call
  const { capability, baseUrl } = load(cli, name)
  const { product, publicId } = capability
  const holder = product === 'whisper' ? loadReceipt(cli, name) : null
  const question = await confirm(call, {
    message: `Destroy ${WHAT[product]} "${name}" for good? Nothing is refunded. Seller: ${baseUrl}.`,
    about: ['destroy', name, publicId],
    refusal: 'Nothing was destroyed.',
  })
  if (question !== null) return question
  const mayfly = cli.mayfly(baseUrl)
  if (holder !== null) await mayfly.whisperReceipt(holder).destroy()
  if (capability.product === 'catch') await mayfly.catch(capability).destroy()
  if (capability.product === 'pulse') await mayfly.pulse(capability).destroy()
  // The receipt of a whisper still tells for a day when it was read.
  if (product !== 'whisper') forget(cli, name)
  return { destroyed: true, product, publicId }
}

const WHAT: Record<Product, string> = {
  catch: 'the inbox with all that it received,',
  pulse: 'the monitor',
  whisper: 'the whisper with the reads that are left,',
}
