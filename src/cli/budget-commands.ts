/** `mayfly budget`: what the wallet may still pay today. */
import type { Command } from 'commander'
import { budgetFile, budgetState, resetBudget, sats } from './budget.ts'
import { type Cli, client } from './cli.ts'
import { examples } from './examples.ts'
import { EXIT } from './exit.ts'
import { columns } from './text.ts'

export function addBudget(program: Command): void {
  const budget = program
    .command('budget')
    .description('show what the wallet may still pay today, and start the day anew')
  budget
    .command('show', { isDefault: true })
    .description('show what was paid today, and what is left')
    .addHelpText(
      'after',
      `${examples('mayfly budget', 'MAYFLY_MAX_SATS_PER_DAY=5000 mayfly budget')}
A day is one of UTC. Payments under way, and those that were killed, count with the highest fee that the wallet
may pay. Only payments from MAYFLY_WALLET_URL count.
`,
    )
    .action(
      client<object, []>(async (cli) => {
        show(cli)
        return EXIT.ok
      }),
    )
  budget
    .command('reset')
    .description('count nothing of today as spent, also if the file was lost or is damaged')
    .addHelpText('after', examples('mayfly budget reset'))
    .action(
      client<object, []>(async (cli) => {
        resetBudget(cli)
        show(cli)
        return EXIT.ok
      }),
    )
}

function show(cli: Cli): void {
  const { maxSats, maxSatsPerDay, folder } = cli
  const { day, spentMsat, isLost, isClockBehind } = budgetState(cli)
  const leftMsat = isLost ? 0 : Math.max(0, maxSatsPerDay * 1000 - spentMsat)
  const notes = [
    ...(isLost
      ? ['The file was missing beside saved purchases, so this day counts as spent.']
      : []),
    ...(isClockBehind ? ['The clock of this machine is behind that day.'] : []),
  ]
  cli.answer(
    { day, spentMsat, leftMsat, maxSatsPerDay, maxSats, isLost, isClockBehind },
    columns([
      ['day', `${day} (UTC)`],
      ['spent', `${sats(spentMsat)} sat, fees included`],
      ['left', `${sats(leftMsat)} of ${maxSatsPerDay} sat (MAYFLY_MAX_SATS_PER_DAY)`],
      ['ceiling', `${maxSats} sat for one purchase (MAYFLY_MAX_SATS, --max-sats)`],
      ['file', budgetFile(folder)],
      ...notes.map((says) => ['note', `${says} To count nothing as spent: mayfly budget reset`]),
    ]),
  )
}
