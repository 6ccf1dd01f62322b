/** `mayfly recover INVOICE`: collects what was paid for, where only the wallet is left. */
import type { AnyCapability } from '../client/index.ts'
import { isSameInvoice } from '../client/offer.ts'
import { sharedWhisper } from '../client/whisper.ts'
import { copiedInvoice, decodeInvoice } from '../protocol/bolt11.ts'
import { client } from './cli.ts'
import { secretFrom } from './options.ts'
import { freeName, keepEnd, savedAs } from './purchase.ts'
import { dropPurchase, isTaken, nameSaved, openPurchases } from './vault/purchases.ts'
import { checkName, isSaved, publicPart, save } from './vault/saved.ts'
import { inVault } from './vault/vault.ts'

export const addRecover = client({
  command: 'recover',
  says: 'collect what an invoice has paid for, by the preimage that your wallet shows',
  takes: {
    '<invoice>': 'the whole invoice, BOLT 11, with or without lightning:',
    '--preimage-file <file>': ['the preimage: the first line, or - for stdin', String, '-'],
    '--name <name>': 'the name to save it under',
  },
  examples: ['mayfly recover lnbc… --name hooks'],
  notes: `
Whoever has both can collect the purchase, so the preimage is no argument, which other users of this machine could
see. A purchase that was begun here is gone on with by its name: \`mayfly list\`.
`,
  async run(cli, { invoice, preimageFile, name: wanted }) {
    const { bolt11 } = decodeInvoice(copiedInvoice(invoice))
    if (wanted !== undefined && isSaved(cli, checkName(wanted))) throw nameSaved(wanted)
    const open = openPurchases(cli).find(({ record }) =>
      record.invoices.some((each) => isSameInvoice(each.bolt11, bolt11)),
    )
    const { whisper, planId, service } = open?.record ?? {}
    const baseUrl = service ?? cli.url
    const mayfly = cli.mayfly(baseUrl)
    const { signal } = cli
    const proof = { bolt11, preimage: await secretFrom(cli, preimageFile, 'The preimage: ') }
    const done = await mayfly.recover(proof, { signal })
    if ('product' in done) {
      const capability = whisper ? sharedWhisper(done, whisper) : (done as AnyCapability)
      const saved = { capability, baseUrl, ...(planId ? { planId } : {}) }
      const name = inVault(cli, (db) => {
        if (open) dropPurchase({ ...cli, db }, open.name)
        const isFree = (some: string): boolean => !isTaken(db, some)
        const own = open && isFree(open.name) ? open.name : null
        const as = wanted ?? own ?? freeName(done.product, (some) => !isFree(some))
        save({ ...cli, db }, as, saved)
        return as
      })
      cli.answer({ name, baseUrl, ...publicPart(capability) }, savedAs(cli, name))
      if (done.product === 'whisper' && !whisper) {
        cli.warn('Its content was encrypted elsewhere: the code to share is only there.')
      }
      return
    }
    const { expiresAt } = done
    if (open) {
      keepEnd(cli, open.name, expiresAt)
      dropPurchase(cli, open.name)
    }
    cli.answer({ extended: true, expiresAt }, `It was extended, and ends at ${expiresAt}\n`)
  },
})
