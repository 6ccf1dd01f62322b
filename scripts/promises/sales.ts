/** What is promised to whoever pays, and to whoever operates a service that sells. */
import type { Section } from './promise.ts'

export const PAYING: Section = {
  title: 'Paying',
  promises: [
    {
      says: 'One Idempotency-Key is one order and one invoice, however often and from wherever it is sent.',
      simulated: ['one key, one invoice'],
      tests: {
        'test/api/purchase-keys.test.ts': [
          '50 purchases at once with one key become one order and one invoice',
        ],
        'test/e2e/instances.test.ts': [
          '50 purchases with one key become one order and one invoice',
        ],
        'test/payment/orders-opening.test.ts': [
          'a repeat gets the same quote, even after the price of the plan has changed',
        ],
      },
    },
    {
      says: 'What is paid and not sealed is never answered with something to pay.',
      simulated: ['nothing to pay for what is paid'],
      tests: {
        'test/api/delivery.test.ts': [
          'a key never asks for money twice, whatever became of its order',
        ],
        'test/api/order-of-checks.test.ts': [
          'a purchase with the key of an order that is … is answered as docs/design.md says',
          'a purchase with the credential of an order that is …, under a key of no order, is answered as docs/design.md says',
        ],
      },
    },
    {
      says: 'An invoice is for exactly the price of the quote, and is checked before anybody sees it.',
      tests: {
        'test/payment/orders-opening.test.ts': [
          'opening makes one invoice for exactly the price, and quotes it',
          'an invoice for another amount than asked is not shown to anybody',
        ],
      },
    },
    {
      says: 'A request that is refused costs nothing, and leaves no order and no invoice.',
      tests: {
        'test/api/purchase.test.ts': [
          'every broken purchase is refused before there is an order or an invoice',
        ],
        'test/api/limits.test.ts': ['a purchase that gets 429 leaves no order and no invoice'],
      },
    },
    {
      says: 'The SDK and `mayfly mcp` pay one invoice for one purchase, and not more than they are allowed.',
      tests: {
        'test/client/purchase-faults.test.ts': [
          '…: an answer that is lost is asked for again, and nothing is paid twice',
          '…: a price above the ceiling is refused before anything is paid',
          'a second invoice after the payment is never paid',
        ],
        'test/cli/mcp/money.test.ts': [
          '…: twenty purchases at once never pay more than the day allows',
          'a process that is killed while it pays leaves the payment counted, and the next one pays once',
        ],
      },
    },
  ],
  not: [
    'A refund by the service. What was paid and cannot be provisioned is noted, never deleted, and repaired or paid back by the operator.',
    'That a wallet pays once: a wallet that pays two invoices has bought two things.',
  ],
}

export const COLLECTING: Section = {
  title: 'Getting what was paid for',
  promises: [
    {
      says: 'Whoever has paid gets it, whatever was lost on the way: delivered, kept until it ends, or noted as owed.',
      simulated: ['paid means delivered', 'rest is reached'],
      tests: {
        'test/e2e/kill.test.ts': [
          'a service killed between settlement and poll delivers to the poll after the restart',
          'a payment while the service was down is found at the start, without a poll',
        ],
        'test/payment/orders-settling.test.ts': [
          'a payment that is found long after expiresAt is still provisioned',
          'a payment that cannot be honoured is recorded as such, and logged once',
        ],
        'test/e2e/lnd.test.ts': ['every payment that the node ever received has bought something'],
      },
    },
    {
      says: 'One payment is one capability, and all its deliveries have the same bytes.',
      simulated: ['one delivery'],
      tests: {
        'test/payment/orders-delivering.test.ts': [
          'a plain poll delivers exactly once, however many race',
        ],
        'test/payment/orders-settling.test.ts': [
          'settling provisions once, whoever learns of the payment, and however many at once',
        ],
        'test/e2e/instances.test.ts': ['one of 50 polls of a paid order delivers'],
        'test/faults/settlements.faults.ts': [
          'an order is provisioned once when the node tells of it three times, in the wrong order, to two instances',
        ],
      },
    },
    {
      says: 'Nobody gets what is not paid for.',
      simulated: ['nothing for nothing'],
      tests: {
        'test/api/payment-auth.test.ts': [
          'every Payment credential that is not right is refused, each for its reason, and loses nothing',
        ],
        'test/api/l402.test.ts': [
          'a credential of another purchase is 402, so that its client recovers',
        ],
      },
    },
    {
      says: 'A thief who guesses a key, or learns an order id, collects nothing; the payer collects it with the preimage.',
      simulated: ['nothing for nothing'],
      tests: {
        'test/payment/orders-contested.test.ts': [
          'a thief who opens first and waits for the victim to pay collects nothing',
          'a contested order is handed to a preimage alone, by poll and by purchase, and settles by it',
        ],
        'test/api/one-url-threats.test.ts': [
          'a stranger who learned the order id collects nothing: no poll, key or preimage delivers it',
        ],
        'test/payment/key-strength.test.ts': ['a key that others may know is never strong: …'],
      },
    },
    {
      says: 'An answer that got lost is given again, byte for byte, until the capability is used.',
      tests: {
        'test/api/one-url.test.ts': [
          'an answer to … that got lost is given again, byte for byte, until the first use',
        ],
        'test/payment/orders-delivering.test.ts': [
          'the first use of a token seals the replay, and wipes the seed',
        ],
      },
    },
    {
      says: 'An extension is paid once and adds its time and limits once. If its target ends meanwhile, its payer gets a new one.',
      simulated: ['extended once'],
      tests: {
        'test/api/extension.test.ts': [
          'twenty repeats by key, poll, preimage and credential extend once',
          'two extensions that are paid at the same time both count',
        ],
        'test/api/extension-ends.test.ts': [
          'extending a … that … before it is paid: its buyer gets a new one',
        ],
      },
    },
    {
      says: 'A changed catalogue, secret or public address takes nothing from who was quoted or has paid.',
      simulated: ['an open quote stands'],
      tests: {
        'test/api/catalog.test.ts': [
          'an order keeps its plan and price when the catalogue changes under it',
        ],
        'test/api/delivery.test.ts': [
          'a change of the secret between any two steps changes nothing for the buyer',
        ],
        'test/api/moved.test.ts': [
          'a … credential that was paid before the public address changed is delivered',
        ],
      },
    },
    {
      says: 'A restored backup loses no payment: what was open in it is settled, and the operator finds what it does not know, and gives it anew or pays it back. Who proves a payment meets no invoice meanwhile.',
      simulated: ['a restore loses no payment'],
      tests: {
        'test/api/lost-orders.test.ts': [
          'an order that was lost is made good by its payment hash, and its … credential collects it',
          'a buyer of the native flow who shows the preimage of a lost order meets no invoice',
        ],
        'test/cli/operator/backup.test.ts': [
          'a backup that was taken under load has all that was acknowledged before it',
          'an order that was open in a backup is given to nobody but who proves the payment, since who knew its key is forgotten',
        ],
      },
    },
    {
      says: 'What was paid and could not be provisioned is repaired or refunded, once.',
      simulated: ['repaired or refunded'],
      tests: {
        'test/payment/repair.test.ts': [
          'repairing an order ten times at once provisions once',
          'noting a refund and repairing at once do only one of the two',
        ],
      },
    },
    {
      says: 'No request is refused for nothing, and none fails inside, whatever fails around the service.',
      simulated: ['answers make sense'],
      tests: {
        'test/api/random.test.ts': [
          '10 000 random requests each get an answer, and none of them is our fault',
        ],
        'test/api/described.test.ts': [
          'every operation answers each of its statuses as the description says, and says nothing else',
        ],
      },
    },
  ],
  not: [
    'A second delivery after the capability was used, or 24 hours after the first: a lost token is lost.',
    'Delivery to a guessable key from another address without the preimage.',
    'A payment after `expiresAt` buys what was quoted only if the node takes it; nobody holds the price beyond.',
    'Sales while the node is away. What was sold works on.',
  ],
}

export const GATE: Section = {
  title: 'GATE (beta)',
  promises: [
    {
      says: 'One payment runs the handler once, whoever repeats, hangs up, or restarts something.',
      simulated: ['one payment, one run', 'a receipt opens its own request'],
      tests: {
        'test/gate-middleware/attacks.test.ts': [
          'one payment runs the handler once for ten requests that hang up in the middle of it',
          'one payment runs nothing twice for a request that comes during the run: the request waits',
        ],
        'test/gate-middleware/restarts.test.ts': [
          'a restart lets nobody in again where the guard has a folder',
          'a restart of the service with an older store lets nobody in again: the key is the intent',
        ],
      },
    },
    {
      says: 'A payment costs a project one credit, and gets one receipt, however often it is proved.',
      simulated: ['one payment, one receipt', 'a receipt for a payment'],
      tests: {
        'test/e2e/instances.test.ts': [
          '50 proofs of one payment at GATE cost one credit and get one receipt',
        ],
        'test/gate/proofs.test.ts': [
          'a proof writes nothing where the store fails, and can be repeated',
        ],
      },
    },
    {
      says: 'A right preimage is honoured for as long as its intent is kept, and never answered with another invoice.',
      simulated: ['paid means a receipt'],
      tests: {
        'test/gate-middleware/middleware.test.ts': [
          'a proof that comes a day after the invoice is honoured',
          'a proof of a payment for another request is never answered with an invoice, and is not lost',
        ],
      },
    },
    {
      says: 'One request has one invoice, of the address and over the price that the operator has registered.',
      simulated: ['one request, one invoice', 'an invoice as agreed'],
      tests: {
        'test/gate/intents.test.ts': [
          'an intent is the same one for the same key and request, with one invoice',
          'an intent is found again after the secret was changed, and after its route is gone',
        ],
        'test/gate/provider.test.ts': [
          'an invoice that the same provider gave before is refused, for ever and for all',
        ],
      },
    },
    {
      says: 'A receipt verifies by the published keys, also after the secret has changed; an old capability of a project opens nothing.',
      simulated: ['a receipt verifies', 'an old capability ends'],
      tests: {
        'test/api/gate-access.test.ts': ['a capability that was replaced opens nothing any more'],
        'test/gate-middleware/receipts.test.ts': [
          'a receipt is verified by a new key after a rotation, and a made-up key costs nothing',
        ],
      },
    },
    {
      says: 'A handler that failed is run again for the same payment, at most twice.',
      tests: {
        'test/gate-middleware/attacks.test.ts': [
          'one payment is good for three runs in all, when each of them fails',
        ],
        'test/gate/give-back.test.ts': [
          'giving back happens twice for an intent at most; the third is noted as paid and not honoured',
        ],
      },
    },
  ],
  not: [
    'That a provider of a Lightning Address pays its project: the payment goes to the project directly.',
    'A guard in memory knows nothing of the time before its restart. [gate.md](gate.md#one-payment-one-run) says what that admits.',
  ],
}
