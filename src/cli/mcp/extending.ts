/**
 * The tool that extends. A purchase is repeatable by its name, but a name can be extended many times. So each call
 * says which end it wants moved, and moves it once.
 */
import type { InputRequiredResult } from '@modelcontextprotocol/server'
import { MayflyError } from '../../client/index.ts'
import type { PurchaseResult } from '../../mcp-tools/purchases.ts'
import { CliError, EXIT } from '../exit.ts'
import { type Done, extendSaved, type Held, heldAs, statusOf } from '../extension.ts'
import { keepEnd } from '../purchase.ts'
import { openPurchase } from '../vault/purchases.ts'
import { type Asking, confirm } from './confirm.ts'
import { checkCeilings, costing, joined, orInvoice, paying, priceOf, underWay } from './paying.ts'
import { settled } from './results.ts'
import type { Session } from './session.ts'

export type ExtendInput = { name: string; expiresAt: string }

export async function extend(
  call: Asking,
  { name, expiresAt }: ExtendInput,
): Promise<PurchaseResult | InputRequiredResult> {
  const { session, cli, ctx } = call
  const end = Date.parse(expiresAt)
  const what = `extend ${end}`
  const before = joined(session, name, what)
  if (before !== null) return before
  const held = heldAs(cli, name)
  const begun = openPurchase(cli, name)
  const now = await lookAt(call, { held, isBegun: begun !== null })
  if (now !== null && Date.parse(now.expiresAt) > end) {
    return (
      (await collectExtension(call, name)) ??
      lasting(name, keepEnd(cli, name, now.expiresAt)?.capability.expiresAt ?? now.expiresAt)
    )
  }
  if (now !== null && Date.parse(now.expiresAt) < end) {
    throw new CliError(
      `${name} ends at ${now.expiresAt}, and not at ${expiresAt}. Nothing was paid. To extend it, call this tool with expiresAt ${now.expiresAt}.`,
      EXIT.usage,
    )
  }
  const { product } = held.capability
  const { baseUrl } = held
  const planId = begun?.planId ?? now?.planId ?? held.planId
  if (planId === undefined)
    throw new CliError(`The plan of ${name} is not known. Nothing was paid.`)
  const priceSats = await priceOf(cli, { baseUrl, product, planId })
  if (cli.walletUrl !== null && begun?.preimage === undefined) {
    // An interrupted extension may have its part of the budget already.
    checkCeilings(cli, { priceSats, isNew: begun === null })
    const question = await confirm(call, {
      message: `Extend ${WHAT[product]} "${name}" by its plan (${planId}) ${costing(cli, { baseUrl, priceSats })}`,
      about: ['extend', name, end, planId, priceSats, baseUrl],
      refusal: 'Nothing was extended or paid.',
    })
    if (question !== null) return question
  }
  ctx.mcpReq.signal.throwIfAborted()
  return underWay(session, name, {
    what,
    done: () =>
      paying(call, {
        ...{ name, maxSats: Math.min(cli.maxSats, priceSats) },
        async work(payer, caller) {
          const goOn = `To continue, call extend again with the same name and expiresAt; nothing is paid twice.`
          return doneAs(
            session,
            name,
            await extendSaved(payer, name, { ...caller, goOn, endsAt: end }),
          )
        },
      }),
  })
}

/** Collects an extension that was begun and paid elsewhere, and pays nothing. Null: none is under way. */
export async function collectExtension(
  { session, cli }: Asking,
  name: string,
): Promise<PurchaseResult | null> {
  if (openPurchase(cli, name) === null) return null
  return orInvoice(name, async ({ onInvoice }) => {
    const goOn = `To continue, call check_order again with the name ${name}.`
    const caller = { onInvoice, goOn }
    return doneAs(session, name, await extendSaved(cli, name, { ...caller, isCollecting: true }))
  })
}

/** The end and the plan of today. Null for what is gone, if an extension of it may be paid already. */
async function lookAt({ cli }: Asking, { held, isBegun }: { held: Held; isBegun: boolean }) {
  try {
    return await statusOf(cli, held)
  } catch (error) {
    if (isBegun && error instanceof MayflyError && GONE.includes(error.phrase)) return null
    throw error
  }
}

const GONE = ['not found', 'unauthorized']

function doneAs(session: Session, name: string, done: Done): PurchaseResult {
  if ('expiresAt' in done) return lasting(name, done.expiresAt)
  const { next, ...bought } = settled(session, done.name, done.replacement)
  return {
    ...bought,
    next: `${name} had ended before it was paid, so a new one was sold in its place. ${next}`,
  }
}

const lasting = (name: string, expiresAt: string): PurchaseResult => ({
  state: 'settled',
  name,
  extended: { expiresAt },
  next: `${name} lasts until ${expiresAt}, with the address and the tokens that it had. To extend it once more, call extend with that expiresAt.`,
})

const WHAT = { catch: 'the inbox', pulse: 'the monitor' } as const
