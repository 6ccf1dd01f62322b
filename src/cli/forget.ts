/** `mayfly forget NAME`: deletes a saved capability or draft, but asks first if it was paid for. */
import { isPingOnly } from '../client/capability-file.ts'
import type { PurchaseRecord } from '../client/index.ts'
import { isId } from '../lib/ids.ts'
import { confirm } from './ask.ts'
import { type Cli, client } from './cli.ts'
import { anyEnding, CliError, notThere } from './exit.ts'
import { refuseHeld, resume } from './purchase.ts'
import { ENDED, stateOf } from './status.ts'
import { dropPurchase, findPurchase, openPurchase } from './vault/purchases.ts'
import { A, checkName, findKept, forget, isSaved } from './vault/saved.ts'
import { findUnopened, forgetUnopened } from './vault/unopened.ts'
import { inVault } from './vault/vault.ts'

export const addForget = client({
  command: 'forget',
  says: 'remove what is saved under a name; the service keeps its copy',
  takes: {
    '<name-or-id>': 'a name, or the id of a whisper that was read here and not opened',
    '--yes': 'remove it without checking or asking; it cannot be restored',
  },
  examples: ['mayfly forget hooks'],
  notes: `
It asks the service first. If an unfinished purchase turns out to be paid, it is collected and kept. What may
still be valid is only forgotten with --yes, because its tokens are nowhere else.
`,
  async run(cli, { nameOrId: name, yes = false }) {
    if (isId('whisper', name)) return forgetRead(cli, name, yes)
    const open = findPurchase(cli, checkName(name))
    if (open !== null) refuseHeld(open)
    const isHere = isSaved(cli, name)
    if (open === null && !isHere) {
      throw notThere(`Nothing is saved as ${name}. \`mayfly list\` shows what is.`)
    }
    if (!yes && isHere) await allowForgetting(cli, name)
    const lost = open === null || yes ? null : await whatIsLost(cli, name, open.record)
    if (lost !== null) await confirm(cli, name, lost)
    inVault(cli, (db) => {
      const here = { ...cli, db }
      const now = findPurchase(here, name)
      const isOther = now !== null && now.record.revision !== open?.record.revision
      // Another command may have paid, or bought it, while the service or the person was asked.
      if (isOther || (isSaved(here, name) && !isHere)) {
        throw new CliError(`${name} has changed meanwhile, so nothing was forgotten.`)
      }
      dropPurchase(here, name)
      forget(here, name)
    })
    cli.answer({ name, forgotten: true }, `${name} is forgotten.\n`)
  },
})

/** Gives up what reads of a whisper brought that nobody could open. */
async function forgetRead(cli: Cli, publicId: string, isAgreed: boolean): Promise<void> {
  if (findUnopened(cli, publicId) === null) throw notThere(`No read of ${publicId} is kept here.`)
  if (!isAgreed) {
    await confirm(cli, publicId, 'This forgets the only copy of what a spent read brought.')
  }
  forgetUnopened(cli, publicId)
  cli.answer({ name: publicId, forgotten: true }, `What was read of ${publicId} is forgotten.\n`)
}

/** What giving a purchase up would lose, if anything. What turns out to be paid is collected and saved. */
async function whatIsLost(cli: Cli, name: string, record: PurchaseRecord): Promise<string | null> {
  const { service, state, invoices } = record
  const { amountSats, paymentHash } = invoices.at(-1) ?? {}
  const payment =
    state === 'paying'
      ? ` Its wallet may have paid ${amountSats} sat, or may pay them yet (payment hash ${paymentHash}).`
      : ''
  const key = `This forgets the key of a purchase at ${service}`
  if (service === null) {
    return state === 'failed' ? null : `This forgets the record of a payment.${payment}`
  }
  try {
    await resume({ ...cli, note: () => undefined }, name, {
      isCollecting: true,
      onInvoice() {
        throw new StillOpen()
      },
    })
  } catch (error) {
    if (cli.signal.aborted) throw error
    if (error instanceof StillOpen) {
      return `${key}. Its invoice is not paid yet and still stands: a payment of it brings nothing then.`
    }
    // What the service said may have ended it.
    if (state === 'failed' || openPurchase(cli, name) === null) return null
    return `${key}, which may be paid.${payment} ${anyEnding(error, service).sentence}`
  }
  throw new CliError(
    `${name} is paid, so it was collected and saved. To give that up: mayfly forget ${name} --yes`,
  )
}

class StillOpen extends Error {}

/** @throws CliError if a capability is, or may be, still valid. */
async function allowForgetting(cli: Cli, name: string): Promise<void> {
  const saved = findKept(cli, name)
  // What only pings is a copy: its owner has all of it.
  if (saved === null || isPingOnly(saved)) return
  const { capability, baseUrl } = saved
  const { product, expiresAt } = capability
  let unknown = ''
  try {
    const state = await stateOf(cli.mayfly(baseUrl), saved)
    if (state === null ? Date.parse(expiresAt) <= cli.now() : ENDED.has(state)) return
  } catch (error) {
    if (cli.signal.aborted) throw error
    unknown = ` ${anyEnding(error, baseUrl).sentence}`
  }
  const good = `${A[product]} that ${unknown ? 'may be' : 'is'} good until ${expiresAt}.`
  const end = product === 'whisper' ? '' : ` To end it: mayfly destroy ${name}.`
  const warning = `This forgets the only copy of what opens ${name}, ${good}${unknown || end}`
  await confirm(cli, name, warning)
}
