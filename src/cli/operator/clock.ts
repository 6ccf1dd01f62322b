/** `mayfly clock show|accept`: lets the operator confirm a clock that has jumped. */
import type { Command } from 'commander'
import { acceptClock, BEAT_EVERY_MS, JUMP_MS, timesIn } from '../../db/deletion-clock.ts'
import { rfc3339, systemClock } from '../../lib/clock.ts'
import { examples } from '../examples.ts'
import { EXIT } from '../exit.ts'
import { operator, withStore } from './command.ts'

export function addClock(program: Command): void {
  const clock = program
    .command('clock')
    .description('check the clock after a jump, and allow deletion again')
  addShow(clock)
  addAccept(clock)
}

function addShow(clock: Command): void {
  clock
    .command('show')
    .description("show this machine's time and the last time in the store")
    .addHelpText('after', examples('mayfly clock show'))
    .action(
      operator(async (output) => {
        const now = systemClock.now()
        const { seenAt } = await withStore((_config, db) => timesIn(db))
        const seen = seenAt === null ? null : rfc3339(seenAt)
        output.answer(
          { now: rfc3339(now), lastSeenAt: seen },
          `The time on this machine is ${rfc3339(now)}.\nThe last time in the store is ${seen ?? 'not set yet'}.\n`,
        )
        return EXIT.ok
      }),
    )
}

function addAccept(clock: Command): void {
  clock
    .command('accept')
    .description('confirm that the time on this machine is right, so that deletion resumes')
    .addHelpText('after', examples('mayfly clock accept'))
    .action(
      operator(async (output) => {
        const now = systemClock.now()
        await withStore((_config, db) => db.write(acceptClock(now)))
        output.answer(
          { accepted: rfc3339(now) },
          `The time on this machine is ${rfc3339(now)}. Every instance whose clock agrees resumes ` +
            `deletion within ${BEAT_EVERY_MS / 1000} seconds. A stopped service does so if it starts ` +
            `within ${JUMP_MS / 60_000} minutes.\n`,
        )
        return EXIT.ok
      }),
    )
}
