/**
 * `npm run bench [row …]`: what is measured, and against what. Rows print one line each; ratios
 * compare two programs that took turns in the same run.
 */
import { challengeRow } from './rows/challenge.ts'
import { ingestRow } from './rows/ingest.ts'
import { ingestFullRow } from './rows/ingest-full.ts'
import { lndRow } from './rows/lnd.ts'
import { pageRow } from './rows/page.ts'
import { paidRepeatRow } from './rows/paid-repeat.ts'
import { pulseRow } from './rows/pulse.ts'
import { quoteRow } from './rows/quote.ts'
import { searchRow } from './rows/search.ts'
import { whisperRow } from './rows/whisper.ts'

const ROWS: Record<string, () => Promise<string[]>> = {
  challenge: challengeRow,
  ingest: ingestRow,
  'ingest-full': ingestFullRow,
  lnd: lndRow,
  page: pageRow,
  'paid-repeat': paidRepeatRow,
  pulse: pulseRow,
  quote: quoteRow,
  search: searchRow,
  whisper: whisperRow,
}

const asked = process.argv.slice(2)
for (const name of asked.length > 0 ? asked : Object.keys(ROWS)) {
  const row = ROWS[name]
  if (!row) {
    process.stderr.write(`No row ${name}. Rows: ${Object.keys(ROWS).join(', ')}\n`)
    process.exit(2)
  }
  for (const line of await row()) process.stdout.write(`${name}: ${line}\n`)
}
