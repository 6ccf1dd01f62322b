/** What is promised to whoever uses what was bought. */
import type { Section } from './promise.ts'

export const CATCH: Section = {
  title: 'CATCH',
  promises: [
    {
      says: 'A request that was answered with 204 is on the disk, once. One that was not is stored at most once for each time it was sent.',
      simulated: ['stored once'],
      tests: {
        'test/catch/ingest.test.ts': ['an event is acknowledged once a flushed unit has stored it'],
        'test/e2e/kill.test.ts': [
          'a service killed under load keeps every event that it has answered 204, and no more than were sold',
        ],
        'test/faults/disk.faults.ts': [
          'acknowledged writes stay on a full disk, the rest is refused, and the service goes on with room',
        ],
      },
    },
    {
      says: 'An event is exactly what was sent: body, headers, path and query, byte for byte.',
      tests: {
        'test/api/catch-ingest.test.ts': [
          'a body comes back byte for byte, whatever it is made of',
        ],
        'test/api/catch-verbatim.test.ts': [
          'path and query are kept raw, as a sender may have signed them',
        ],
      },
    },
    {
      says: 'A list, a stream and a wait show every event once and in order, also across cuts and instances.',
      tests: {
        'test/api/stream-readers.test.ts': [
          '20 readers that are cut off again and again each see 10 000 events once and in order',
        ],
        'test/api/catch-wait.test.ts': ['no event is missed that is stored while a wait begins'],
        'test/faults/places.faults.ts': [
          'every stored event is found once, and every row has one place',
        ],
      },
    },
    {
      says: 'An inbox takes exactly as many requests and bytes as were sold.',
      tests: {
        'test/api/catch-limits.test.ts': [
          'exactly 100 of 200 requests at once are stored where there is room for 100',
        ],
        'test/e2e/instances.test.ts': [
          'exactly as many events are stored as there is room for, however many send',
        ],
      },
    },
    {
      says: 'A stranger does not learn whether an inbox exists, is full, or has ended.',
      tests: {
        'test/api/catch-limits.test.ts': [
          'a stranger cannot tell an unknown, malformed, suspended, exhausted, expired or destroyed inbox from another',
        ],
      },
    },
    {
      says: 'What is deleted is unavailable at once, and no file of SQLite has its bytes after the purge.',
      tests: {
        'test/api/catch-owner.test.ts': [
          'a destroyed inbox is gone at once, with its events and both of its tokens',
        ],
        'test/db/erasure.test.ts': [
          'no file has a byte of an event that its owner deleted',
          'no file has a byte of an expired inbox, once it is purged',
        ],
      },
    },
  ],
  not: [
    'A request whose answer was a 503, or got lost, may be stored; if its sender repeats it, twice.',
    'Bytes in backups, on copying file systems, and in PostgreSQL outlive their deletion ([security.md](security.md#deletion-and-what-remains)).',
  ],
}

export const WHISPER: Section = {
  title: 'WHISPER',
  promises: [
    {
      says: 'A secret is read as often as was sold, and each read has all of its bytes.',
      simulated: ['reads are counted'],
      tests: {
        'test/whisper/reads.test.ts': [
          'exactly seven of 100 readers get the bytes of a whisper with seven reads, the others nothing',
          'a service killed while 100 read hands out no more after a restart than were left',
        ],
        'test/e2e/instances.test.ts': ['one of 40 readers gets the bytes where one read is left'],
      },
    },
    {
      says: 'The service never sees a text or its key.',
      tests: {
        'test/api/whisper-flows.test.ts': [
          'a password is asked for before a read is spent, and the service sees neither',
        ],
        'test/api/whisper-reading.test.ts': ['no token, key or content reaches the log'],
      },
    },
    {
      says: 'A secret does not open before its time, and a look at it spends nothing.',
      tests: {
        'test/api/whisper-reading.test.ts': [
          'reading before the reveal time says when, rounded up, and spends nothing',
        ],
      },
    },
    {
      says: 'After the last read no byte of the secret is left in the store.',
      tests: {
        'test/whisper/reads.test.ts': ['no byte of a whisper is in the store after the last read'],
      },
    },
    {
      says: 'The receipt has each read that was answered.',
      tests: {
        'test/api/whisper-receipt.test.ts': [
          'twenty readers at once are on the receipt as often as they were answered',
        ],
      },
    },
  ],
  not: ['A read whose answer was lost is spent.', 'The receipt says when and how often, not who.'],
}

export const PULSE: Section = {
  title: 'PULSE',
  promises: [
    {
      says: 'A ping that was answered with 204 counts once.',
      simulated: ['pings are counted'],
      tests: {
        'test/pulse/pinging.test.ts': [
          'pings that arrive together are one flushed unit, and each has its count and its time',
          'exactly as many pings that arrive together are accepted as the monitor has left',
        ],
        'test/e2e/instances.test.ts': [
          'a monitor never counts more heartbeats than it was sold with',
        ],
      },
    },
    {
      says: 'No job is called late because we were away, overloaded, suspended it, or had a wrong clock.',
      simulated: ['late only by its own fault'],
      tests: {
        'test/api/pulse-blind.test.ts': [
          'a service that was killed for two hours blames no job, and one that is dead is late one interval and grace after',
          'while a clock that was set is in doubt nobody is late, and no ping is in the future',
        ],
        'test/pulse/clock-steps.test.ts': [
          'a clock that is set right while a monitor is read makes nobody late',
          'a ping after a step back makes nobody late, even if its process dies before it beats',
        ],
        'test/pulse/arrivals.test.ts': [
          'an outage of the network in front of a service that lives makes nobody late, and it doubts itself',
        ],
        'test/pulse/turning.test.ts': [
          'a … that came before the clock was set back is not late by windows that have ended since',
        ],
        'test/api/takedown.test.ts': [
          'a suspension makes no monitor late and opens no switch, and a monitor is late one interval and grace after it',
        ],
      },
    },
    {
      says: 'A job that is dead is told late in time.',
      tests: {
        'test/pulse/arrivals.test.ts': [
          'one dead job among a hundred is late in time, and its silence is believed',
        ],
        'test/pulse/changes.test.ts': [
          'a lateness is told once, from its deadline, with the silence that begins, and so is the ping that ends it',
        ],
        'test/pulse/clock-steps.test.ts': [
          'a job that dies after a clock far ahead was set right is told late in time',
        ],
      },
    },
    {
      says: 'Each change is told once to each destination, in order, and outlives a kill.',
      simulated: ['an alert is delivered', 'no alert is invented', 'alerts come in order'],
      tests: {
        'test/e2e/alerts-kill.test.ts': [
          'alerts survive kill -9 on …: none is lost, each is signed, and the order is kept',
        ],
        'test/alerts/outbox.test.ts': [
          'every destination of an owner gets an alert once, in order, and at most 20 wait, the newest',
        ],
      },
    },
    {
      says: 'A receiver knows what comes from us, and what comes again, and is left alone once it is taken away.',
      simulated: [
        'an alert is signed',
        'a repeated alert is known by its id',
        'a destination that ended is left alone',
      ],
    },
  ],
  not: [
    'A lateness during a blind window is told an interval and a grace after its end.',
    'An alert whose receiver answered, and whose answer was lost, is sent again with the same id. One that nobody takes is given up after three days.',
    'The service does not see who pings: whoever has the ping token is the job.',
  ],
}

export const SWITCH: Section = {
  title: 'A secret bound to silence',
  promises: [
    {
      says: 'No secret opens while the job of its monitor pings in time, whatever happens to us.',
      simulated: ['a switch opens by silence alone'],
      tests: {
        'test/api/whisper-switch.test.ts': [
          'an outage of the service never opens a secret, and neither does a switch that no ping has armed',
        ],
        'test/switches/bindings.test.ts': [
          'lateness, a failed run, an expiring monitor and a recovery never open it',
        ],
      },
    },
    {
      says: 'Once its job has fallen silent, an armed secret opens, for good.',
      simulated: ['a switch opens by silence'],
      tests: {
        'test/api/whisper-switch.test.ts': [
          'a secret opens when the pings of its monitor stop, and only then, also after a restart',
          'a clock that is set back after the ping that armed it keeps no secret shut',
        ],
      },
    },
    {
      says: 'A reader does not learn which monitor a secret waits for, or why.',
      tests: {
        'test/api/whisper-switch.test.ts': [
          'until it opens, a read says the same for every monitor and every cause, and spends nothing',
        ],
      },
    },
  ],
  not: [
    'That it opens to the minute: a doubted clock, a blind window or a refused ping puts it off.',
    'An operator can keep a switch shut for ever. A monitor that is used up or destroyed in good health leaves its secret shut.',
  ],
}
