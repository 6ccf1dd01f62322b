/**
 * `npm run bench -- [--engine postgres] [row …]`: runs the rows, and prints a line for each. A ratio
 * compares two programs that took turns in the same run.
 */
import { parseArgs } from 'node:util'
import { type Engine, SQLITE, startPostgresEngine } from './engine.ts'
import { challengeRow } from './rows/challenge.ts'
import { ingestRow } from './rows/ingest.ts'
import { ingestFullRow } from './rows/ingest-full.ts'
import { ingestTurnsRow } from './rows/ingest-turns.ts'
import { instancesRow } from './rows/instances.ts'
import { lateRow } from './rows/late.ts'
import { lndRow } from './rows/lnd.ts'
import { pageRow } from './rows/page.ts'
import { paidRepeatRow } from './rows/paid-repeat.ts'
import { pulseRow } from './rows/pulse.ts'
import { quoteRow } from './rows/quote.ts'
import { searchRow } from './rows/search.ts'
import { startRow } from './rows/start.ts'
import { whisperRow } from './rows/whisper.ts'

type Rows = Record<string, (engine: Engine) => Promise<string[]>>

const ROWS: Rows = {
  challenge: challengeRow,
  ingest: ingestRow,
  late: lateRow,
  lnd: lndRow,
  page: pageRow,
  'paid-repeat': paidRepeatRow,
  pulse: pulseRow,
  quote: quoteRow,
  start: startRow,
  whisper: whisperRow,
}

/** Rows that fill a file run only on SQLite, and the row with two instances only on PostgreSQL. */
const ENGINES: Record<string, { start(): Promise<Engine>; rows: Rows }> = {
  sqlite: {
    start: async () => SQLITE,
    rows: {
      ...ROWS,
      'ingest-full': ingestFullRow,
      'ingest-turns': ingestTurnsRow,
      search: searchRow,
    },
  },
  postgres: {
    start: startPostgresEngine,
    rows: { ...ROWS, instances: instancesRow },
  },
}

const { values, positionals } = parseArgs({
  options: { engine: { type: 'string', default: 'sqlite' } },
  allowPositionals: true,
})
const chosen = ENGINES[values.engine] ?? refuse(`No engine ${values.engine}: sqlite or postgres`)
const names = positionals.length > 0 ? positionals : Object.keys(chosen.rows)
const rows = names.map((name) => {
  const row = chosen.rows[name]
  const list = Object.keys(chosen.rows).join(', ')
  return row ? { name, row } : refuse(`No row ${name} on ${values.engine}. Rows: ${list}`)
})

const engine = await chosen.start()
try {
  for (const { name, row } of rows) {
    for (const line of await row(engine)) {
      process.stdout.write(`${engine.prefix}${name}: ${line}\n`)
    }
  }
} finally {
  await engine.stop()
}

function refuse(sentence: string): never {
  process.stderr.write(`${sentence}\n`)
  process.exit(2)
}
