/** `mayfly recover INVOICE`: collects what was paid for, where only the wallet is left. */
import { isSameInvoice } from '../client/offer.ts'
import { copiedInvoice, decodeInvoice } from '../protocol/bolt11.ts'
import { client } from './cli.ts'
import { secretFrom } from './options.ts'
import { freeName, keepBought, savedAs } from './purchase.ts'
import { dropPurchase, isTaken, nameSaved, openPurchases } from './vault/purchases.ts'
import { checkName, isSaved, publicPart } from './vault/saved.ts'
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
    const baseUrl = open?.record.service ?? cli.url
    const mayfly = cli.mayfly(baseUrl)
    const { signal } = cli
    const proof = { bolt11, preimage: await secretFrom(cli, preimageFile, 'The preimage: ') }
    const done = await mayfly.recover(proof, { signal })
    const sold = 'product' in done ? done.product : null
    const bought = inVault(cli, (db) => {
      const here = { ...cli, db }
      if (open) dropPurchase(here, open.name)
      const name =
        sold === null
          ? open?.name
          : (wanted ?? open?.name ?? freeName(sold, (some) => isTaken(db, some)))
      if (name === undefined) return null
      const { extends: extended, ...begun } = open?.record ?? {}
      // What was sold in place of an extension is a thing of its own.
      const record =
        sold === null && extended !== undefined ? { ...begun, extends: extended } : begun
      return keepBought(here, name, { ...record, service: baseUrl, resource: done })
    })
    if (sold === null || bought === null) {
      const { expiresAt } = done
      return cli.answer(
        { extended: true, expiresAt },
        `It was extended, and ends at ${expiresAt}\n`,
      )
    }
    const { name, saved } = bought
    cli.answer({ name, baseUrl, ...publicPart(saved.capability) }, savedAs(cli, name))
    if (sold === 'whisper' && !open?.record.whisper) {
      cli.warn('Its content was encrypted elsewhere: the code to share is only there.')
    }
  },
})
