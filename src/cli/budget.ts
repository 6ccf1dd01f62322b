/** `mayfly budget`: what the wallet may still pay today. */
import { confirm } from './ask.ts'
import { client } from './cli.ts'
import { columns } from './text.ts'
import { budgetState, resetBudget, sats } from './vault/budget.ts'
import { vaultFile } from './vault/vault.ts'

export const addBudget = client({
  command: 'budget',
  says: 'show what the wallet can still pay today',
  takes: {
    '--reset': 'reset what was spent today to zero',
    '--yes': 'with --reset, do not ask',
  },
  examples: ['mayfly budget', 'MAYFLY_MAX_SATS_PER_DAY=5000 mayfly budget'],
  notes: `
A day is one of UTC. Payments under way, and those that were killed, count with the highest fee that the wallet
may pay. Only payments from MAYFLY_WALLET_URL count.
`,
  async run(cli, { reset, yes }) {
    if (reset) {
      const spent = sats(budgetState(cli).spentMsat)
      const warning = `This counts the ${spent} sat of today as not spent: as much can be spent again.`
      if (!yes) await confirm(cli, 'budget', warning)
      resetBudget(cli)
    }
    const { maxSats, maxSatsPerDay, folder } = cli
    const { day, spentMsat, isClockBehind } = budgetState(cli)
    const leftMsat = Math.max(0, maxSatsPerDay * 1000 - spentMsat)
    cli.answer(
      { day, spentMsat, leftMsat, maxSatsPerDay, maxSats, isClockBehind },
      columns([
        ['day', `${day} (UTC)`],
        ['spent', `${sats(spentMsat)} sat, fees included`],
        ['left', `${sats(leftMsat)} of ${maxSatsPerDay} sat (MAYFLY_MAX_SATS_PER_DAY)`],
        ['ceiling', `${maxSats} sat for one purchase (MAYFLY_MAX_SATS, --max-sats)`],
        ['file', vaultFile(folder)],
        ...(isClockBehind ? [['note', CLOCK_BEHIND]] : []),
      ]),
    )
  },
})

const CLOCK_BEHIND =
  'Payments of a later day count too: the clock was ahead, or is behind. To count nothing as spent: mayfly budget --reset'
