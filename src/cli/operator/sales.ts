/** `mayfly sales export`: the settled orders of a time and what was paid back, for the operator's books. */
import { once } from 'node:events'
import { rfc3339, systemClock } from '../../lib/clock.ts'
import type { Entry } from '../../payment/sales.ts'
import { group } from '../declare.ts'
import { EXIT, misuse } from '../exit.ts'
import { operator, withStore } from './command.ts'
import { timeFrom, timeTo } from './times.ts'

const addExport = operator({
  command: 'export',
  says: 'print the sales and refunds of a time, oldest first',
  takes: {
    '--from <time>': 'since then: a date (UTC), a time, or how long ago, such as 30d',
    '--to <time>': 'until then: a date, which is included, or the time at which it ends',
  },
  examples: [
    'mayfly sales export --from 2026-01-01 --to 2026-03-31 > sales.csv',
    'mayfly sales export --from 30d --json',
  ],
  notes: `
It is CSV, and with --json an object a line.
`,
  async run({ from = '1970-01-01', to, json }) {
    const format = json ? JSON_LINES : CSV
    const now = systemClock.now()
    const between = {
      from: timeFrom(from, '--from', now),
      to: to === undefined ? Number.MAX_SAFE_INTEGER : timeTo(to, '--to', now),
    }
    if (between.to <= between.from) throw misuse('--to must be after --from.')
    const { entriesBetween } = await import('../../payment/sales.ts')
    await withStore(async ({ db }) => {
      await write(format.head)
      for await (const page of entriesBetween(db, between)) {
        await write(page.map((entry) => format.line(shownEntry(entry))).join(''))
      }
    })
    return EXIT.ok
  },
})

export const addSales = group({ command: 'sales', says: 'what was sold, for your books' }, [
  addExport,
])

type Shown = ReturnType<typeof shownEntry>

const shownEntry = (entry: Entry) => ({
  time: rfc3339(entry.at),
  product: entry.product,
  plan: entry.plan_id,
  sats: entry.amount_sats,
  paymentHash: entry.payment_hash,
  network: entry.network,
  refundReason: entry.is_refund === 1 ? entry.reason : null,
})

const COLUMNS = [
  'time',
  'product',
  'plan',
  'sats',
  'paymentHash',
  'network',
  'refundReason',
] as const

/** As RFC 4180 has it, with a head. */
const CSV = {
  head: csvLine(COLUMNS),
  line: (entry: Shown) => csvLine(COLUMNS.map((column) => entry[column] ?? '')),
}

const JSON_LINES = { head: '', line: (entry: Shown) => `${JSON.stringify(entry)}\n` }

function csvLine(values: readonly (string | number)[]): string {
  return `${values.map(csvField).join(',')}\r\n`
}

/** A text that begins with one of these signs would be a formula to a spreadsheet, which runs it. */
function csvField(value: string | number): string {
  if (typeof value === 'number') return String(value)
  const harmless = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value
  return `"${harmless.replaceAll('"', '""')}"`
}

/** Waits while whoever reads is slower, so that a long export is never in memory. */
async function write(text: string): Promise<void> {
  if (text !== '' && !process.stdout.write(text)) await once(process.stdout, 'drain')
}
