/** `mayfly clock show|accept`: the operator's word on a clock that has jumped, on the running store. */
import { acceptClock, BEAT_EVERY_MS, JUMP_MS, timesIn } from '../../db/deletion-clock.ts'
import { rfc3339, systemClock } from '../../lib/clock.ts'
import { operateOnStore } from './command.ts'

const USAGE = `Usage: mayfly clock show      what time it is here, and the last time that the store has seen
       mayfly clock accept    the time here is right: what is over by it may be deleted
`

export async function clockCommand([verb = '', ...stray]: string[]): Promise<number> {
  if ((verb !== 'show' && verb !== 'accept') || stray.length > 0) {
    process.stderr.write(USAGE)
    return 2
  }
  return operateOnStore(async (_config, db) => {
    const now = systemClock.now()
    const here = `The time here is ${rfc3339(now)}.`
    if (verb === 'accept') {
      await db.write(acceptClock(now))
      return {
        isDone: true,
        text:
          `${here} Every instance whose clock agrees deletes what is over again, ` +
          `within ${BEAT_EVERY_MS / 1000} seconds. A service that is stopped takes this word ` +
          `if it starts within ${JUMP_MS / 60_000} minutes.\n`,
      }
    }
    const { seenAt } = await timesIn(db)
    const seen = seenAt === null ? 'none yet' : rfc3339(seenAt)
    return { isDone: true, text: `${here}\nThe last time that the store has seen is ${seen}.\n` }
  })
}
