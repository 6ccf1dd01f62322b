/** `mayfly suspend|resume <publicId>`: the operator's answer to abuse, on the running store. */
import { resumeInbox, suspendInbox } from '../../catch/store.ts'
import { attempt } from '../../db/db.ts'
import { systemClock } from '../../lib/clock.ts'
import { isId } from '../../lib/ids.ts'
import { operateOnStore } from './command.ts'

export async function moderateCommand(
  verb: 'suspend' | 'resume',
  [publicId = '']: string[],
): Promise<number> {
  if (!isId('catch', publicId)) {
    if (publicId !== '') process.stderr.write(`${publicId} is not the id of an inbox.\n`)
    process.stderr.write(`Usage: mayfly ${verb} catch_…\n`)
    return 2
  }
  const isSuspending = verb === 'suspend'
  return operateOnStore(async (_config, db) => {
    const change = isSuspending ? suspendInbox(publicId, systemClock.now()) : resumeInbox(publicId)
    const done = await attempt(db.write({ lockKey: publicId, statements: { inbox: change } }))
    if ('rows' in done) {
      return { isDone: true, text: `${publicId} is ${isSuspending ? 'suspended' : 'active'}.\n` }
    }
    const before = isSuspending ? 'suspended' : 'resumed'
    return { isDone: false, text: `${publicId} is unknown, gone, or was ${before} before.\n` }
  })
}
