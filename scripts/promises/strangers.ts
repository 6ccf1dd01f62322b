/** What is promised against strangers, and to operators. */
import type { Section } from './promise.ts'

export const SECRETS: Section = {
  title: 'Secrets and strangers',
  promises: [
    {
      says: 'The store has no token and no key, and nothing that makes one without the secret.',
      tests: {
        'test/api/delivery-replay.test.ts': [
          'the store holds no token and no key, before, during and after the delivery',
        ],
        'test/secrets/secrets.test.ts': [
          'sealed bytes open with no other key, and in no other context',
        ],
        'test/secrets/tokens.test.ts': [
          'a token shows nothing of its seed',
          'a token is accepted for its kind and its hash alone',
        ],
      },
    },
    {
      says: 'The log has nothing that opens or collects anything.',
      tests: {
        'test/api/http-log.test.ts': [
          'the log has route patterns, and no token, key, preimage, id or path',
        ],
        'test/api/log-orders.test.ts': [
          'whoever reads the log cannot collect an order: no line has the id of one, in any flow, of any product',
        ],
      },
    },
    {
      says: 'A right token, a paid order and a proof are never refused because of what strangers do.',
      tests: {
        'test/api/limits-scope.test.ts': [
          'a good token opens its inbox while its client has guessed too often',
          'what a stranger polls or sends in vain counts for nobody',
        ],
        'test/api/contested.test.ts': [
          'a stranger who floods an order by its guessed key keeps nobody out who proves the payment',
        ],
        'test/api/new-orders.test.ts': [
          'what was quoted and paid works from a blocked network: poll, repeat, credential and preimage',
        ],
      },
    },
    {
      says: 'Nobody takes the room of the others without paying: orders, bytes, searches, streams and answers are bounded.',
      tests: {
        'test/whisper/reservation.test.ts': [
          'a small secret of a newcomer is sold after 100 networks have taken all they can',
        ],
        'test/api/purchase-rooms.test.ts': [
          'a client that fills the room for new secrets keeps nobody from buying, nor from what is paid',
        ],
        'test/api/answers-held.test.ts': [
          '40 streams that nobody reads hold no more than their capability may',
        ],
        'test/payment/open-orders.test.ts': [
          'the unpaid orders of a network are limited exactly, and each network for itself',
        ],
      },
    },
    {
      says: 'Nobody makes the service call a private address, or itself.',
      tests: {
        'test/alerts/connecting.test.ts': [
          'an answer that changes between the check and the connection changes nothing',
        ],
        'test/alerts/outbound.test.ts': [
          'the way out never calls …',
          'the way out follows no redirect',
        ],
      },
    },
    {
      says: 'A host of MCP sees no token, and text of strangers steers nothing.',
      tests: {
        'test/cli/mcp/tools.test.ts': [
          '… uses every tool, and no token, key or preimage comes to it',
          'a hostile webhook stays bounded data without a character that steers',
        ],
      },
    },
  ],
  not: [
    'Anything against whoever controls the process, its machine or its node. The operator can read inboxes.',
    'A token that leaked cannot be replaced, but the ping token.',
  ],
}

export const OPERATING: Section = {
  title: 'Operating',
  promises: [
    {
      says: 'The books balance: orders, capabilities, counters and sums agree with each other, with the node, and with what clients were told.',
      tests: {
        'test/simulation/simulation.test.ts': [
          'no promise is broken by kills, lost answers, loss of power, slow nodes and clocks that jump',
        ],
        'test/faults/kills.faults.ts': [
          'one process on SQLite keeps every promise and the books balance',
          'two processes on PostgreSQL keep every promise and the books balance, while one of them is always there',
        ],
      },
    },
    {
      says: 'A wrong clock deletes nothing that is paid for.',
      tests: {
        'test/api/clock-jumps.test.ts': [
          'a clock that jumps by … hours deletes nothing that is paid for, nor what waits for its payment',
        ],
        'test/db/deletion-clock.test.ts': [
          'the one of several instances whose clock jumped deletes nothing, however long',
        ],
      },
    },
    {
      says: 'A backup that was taken under load has all that was acknowledged before it.',
      tests: {
        'test/cli/operator/backup.test.ts': [
          'a backup that was taken under load has all that was acknowledged before it',
          'restoring refuses what is damaged, newer or no store, and leaves nothing behind',
        ],
      },
    },
    {
      says: 'After an older store was restored nobody is asked to pay again for what the store has lost; the operator is told, and makes it good once.',
      tests: {
        'test/payment/orders-matching.test.ts': [
          'a verified credential of a lost order raises an alarm, once an hour, and is shown nothing to pay',
        ],
        'test/api/lost-orders.test.ts': [
          'an order that was lost is made good by its payment hash, and its … credential collects it',
          'an order that was lost is made good once, however many operators do it at once',
        ],
      },
    },
    {
      says: 'A store is not sold from over another node or network than its own.',
      tests: {
        'test/e2e/lnd-faults.test.ts': [
          'a node that comes back on another network sells nothing, and the log says why',
        ],
      },
    },
    {
      says: 'A start on a damaged, newer or foreign store is refused, and changes nothing.',
      tests: {
        'test/db/sqlite/sqlite.test.ts': [
          'a page damaged in the middle stops the start, and is not changed',
          'a store of a newer version stops the start, and is not changed',
        ],
        'test/cli/operator/one-service.test.ts': [
          'a second service on one SQLite file is refused, and told who holds it and since when',
        ],
      },
    },
  ],
  not: [
    'What was stored after a backup is not in it. [backup.md](backup.md) says what becomes of it.',
    'Without the secret a store is worth nothing: no order of it can be delivered.',
  ],
}
