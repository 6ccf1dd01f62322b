/** `mayfly suspend|resume INBOX`: the operator's answer to abuse, on the running store. */
import type { Command } from 'commander'
import { resumeInbox, suspendInbox } from '../../catch/store.ts'
import { attempt, type Statement } from '../../db/db.ts'
import { systemClock } from '../../lib/clock.ts'
import { isId } from '../../lib/ids.ts'
import { examples } from '../examples.ts'
import { CliError, EXIT } from '../exit.ts'
import { operator, withStore } from './command.ts'

export function addModeration(program: Command): void {
  program
    .command('suspend')
    .description('stop an inbox from accepting requests; its owner can still read it')
    .argument('<inbox>', 'its public id, catch_…')
    .addHelpText('after', examples('mayfly suspend catch_…'))
    .action(
      operator<object, [inbox: string]>(async (output, _options, [inbox]) => {
        await change(inbox, suspendInbox(inbox, systemClock.now()), 'was already suspended')
        output.answer({ publicId: inbox, isSuspended: true }, `${inbox} is suspended.\n`)
        return EXIT.ok
      }),
    )
  program
    .command('resume')
    .description('let a suspended inbox accept requests again')
    .argument('<inbox>', 'its public id, catch_…')
    .addHelpText('after', examples('mayfly resume catch_…'))
    .action(
      operator<object, [inbox: string]>(async (output, _options, [inbox]) => {
        await change(inbox, resumeInbox(inbox), 'is not suspended')
        output.answer({ publicId: inbox, isSuspended: false }, `${inbox} is active.\n`)
        return EXIT.ok
      }),
    )
}

/** @throws CliError if the inbox does not exist, or is already in that state. */
async function change(inbox: string, statement: Statement, already: string): Promise<void> {
  if (!isId('catch', inbox)) {
    throw new CliError(`${inbox} is not the id of an inbox (catch_…).`, EXIT.usage)
  }
  const isRefused = await withStore(async (config, db) => {
    const done = await attempt(db.write({ lockKey: inbox, statements: { inbox: statement } }))
    // Requests that wait for its events end at once; with SQLite, when they look next.
    if (config.databaseUrl.kind === 'postgres' && !('refused' in done)) {
      const { tellInstances } = await import('../../db/postgres/hints.ts')
      await tellInstances(db, inbox)
    }
    return 'refused' in done
  })
  if (isRefused) throw new CliError(`${inbox} is unknown, deleted, or ${already}.`)
}
