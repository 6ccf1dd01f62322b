/** Mistakes that are planted into the SDK to see that the runs of buyers find them. */
import type { Plant as AnyPlant } from '../plants.ts'
import type { Promised } from './run.ts'

export type Plant = Omit<AnyPlant, 'breaks'> & { breaks: readonly Promised[] }

const PAYMENTS = 'client/payments.ts'
const ASKED_WALLET = 'client/asked-wallet.ts'
const OFFER = 'client/offer.ts'
const PAYING = 'client/wallets/paying.ts'

export const PLANTS: readonly Plant[] = [
  {
    name: 'what a wallet says of one call counts for those before',
    file: PAYMENTS,
    text: "if (record.state === 'paying') {\n        throw",
    becomes: 'if (isJustHanded(invoice, now())) {\n        throw',
    breaks: ['what counts as failed stays unpaid'],
  },
  {
    name: 'another invoice is possible as soon as the first one expires',
    file: PAYMENTS,
    text: 'earlierOf(record, said) >= expiresAt + LATE_MS',
    becomes: 'earlierOf(record, said) >= expiresAt',
    breaks: ['one purchase pays once', 'a day never exceeds its ceiling'],
  },
  {
    name: 'another invoice is possible by the buyer’s clock alone',
    file: PAYMENTS,
    text: 'return at === null ? 0 : Math.min(now(), at)',
    becomes: 'return now()',
    breaks: ['one purchase pays once', 'a day never exceeds its ceiling'],
  },
  {
    name: 'what a wallet over Nostr does not know counts as not paid',
    file: PAYMENTS,
    text: `answer.state === 'failed' || wallet.keepsEveryAttempt === true`,
    becomes: 'true',
    breaks: ['one purchase pays once', 'a day never exceeds its ceiling'],
  },
  {
    name: 'another wallet may be asked',
    file: ASKED_WALLET,
    text: `if (before === id || (before === null && state === 'quoted'))`,
    becomes: 'if (before === null || id !== null)',
    breaks: ['one purchase pays once', 'a day never exceeds its ceiling'],
  },
  {
    name: 'a repeat begins anew',
    file: PAYMENTS,
    text: 'if (known === null) return begin(fresh, run)',
    becomes:
      'if (known === null || known.state !== "delivered") return begin({ ...fresh, revision: known?.revision ?? 0 }, run)',
    breaks: ['one purchase pays once', 'a day never exceeds its ceiling'],
  },
  {
    name: 'a write that came second counts as written',
    file: PAYMENTS,
    text: '(await store.save(next)) ? next : null',
    becomes: '(await store.save(next)) ? next : next',
    breaks: ['one purchase pays once', 'a day never exceeds its ceiling'],
  },
  {
    name: 'the fee is not reserved',
    file: ASKED_WALLET,
    text: 'amountMsat + (maxFeeMsat?.(amountMsat) ?? 0)',
    becomes: 'amountMsat',
    breaks: ['a day never exceeds its ceiling'],
  },
  {
    name: 'the price is not compared with the catalogue',
    file: PAYMENTS,
    text: 'if (priceSats === amountSats) return',
    becomes: 'if (priceSats !== -1) return',
    breaks: ['nothing but the quoted price is paid'],
  },
  {
    name: 'an invoice may be handed over again after its end',
    file: PAYMENTS,
    text: 'if (laterOf(said) >= expiresAt || said.isSilent || said.refusal || run.isFollowing) {',
    becomes: 'if (run.isFollowing) {',
    breaks: ['no expired invoice is paid', 'one purchase pays once'],
  },
  {
    name: 'the amount of the invoice is not compared with the quote',
    file: OFFER,
    text: 'invoice.amountMsat === msatOf(quote.amountSats) &&',
    becomes: '',
    breaks: ['nothing but the quoted price is paid'],
  },
  {
    name: 'the payment hash of the invoice is not compared with the quote',
    file: OFFER,
    text: 'invoice.paymentHash === quote.paymentHash &&',
    becomes: '',
    breaks: ['nothing but the quoted price is paid'],
  },
  {
    name: 'the ceiling of a purchase is not looked at',
    file: OFFER,
    text: 'const isBelow = priceMsat <= maxSats * 1000',
    becomes: 'const isBelow = priceMsat > 0',
    breaks: ['nothing but the quoted price is paid'],
  },
  {
    name: 'an expired quote is paid',
    file: OFFER,
    text: 'if (invoice.expiresAt <= now)',
    becomes: 'if (invoice.expiresAt <= 0)',
    breaks: ['no expired invoice is paid'],
  },
  {
    name: 'a failed try of a node that tries again is final',
    file: PAYING,
    text: `before.state === 'none' && !node.triesAgain`,
    becomes: `before.state === 'none'`,
    breaks: [
      'what counts as failed stays unpaid',
      'a day never exceeds its ceiling',
      'one purchase pays once',
    ],
  },
  {
    name: 'a lost answer counts as not paid',
    file: PAYING,
    text: 'throw unknown(\n          isUnderWay',
    becomes: 'throw notPaid(\n          isUnderWay',
    breaks: [
      'what counts as failed stays unpaid',
      'a day never exceeds its ceiling',
      'one purchase pays once',
    ],
  },
]
