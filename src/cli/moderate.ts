/** `mayfly suspend|resume <publicId>`: the operator's answer to abuse, on the running store. */
import { resumeInbox, suspendInbox } from '../catch/store.ts'
import { ConfigError, readConfig } from '../config.ts'
import { attempt, StoreUnusable } from '../db/db.ts'
import { openStore } from '../db/open.ts'
import { systemClock } from '../lib/clock.ts'
import { isId } from '../lib/ids.ts'

export async function moderateCommand(
  verb: 'suspend' | 'resume',
  [publicId = '']: string[],
): Promise<number> {
  if (!isId('catch', publicId)) {
    if (publicId !== '') process.stderr.write(`${publicId} is not the id of an inbox.\n`)
    process.stderr.write(`Usage: mayfly ${verb} catch_…\n`)
    return 2
  }
  try {
    const db = await openStore(readConfig().databaseUrl)
    try {
      const change =
        verb === 'suspend' ? suspendInbox(publicId, systemClock.now()) : resumeInbox(publicId)
      const done = await attempt(db.write([change]))
      if ('rows' in done) {
        process.stdout.write(`${publicId} is ${verb === 'suspend' ? 'suspended' : 'active'}.\n`)
        return 0
      }
      process.stderr.write(
        `${publicId} is unknown, gone, or was ${verb}${verb === 'resume' ? 'd' : 'ed'} before.\n`,
      )
      return 1
    } finally {
      await db.close()
    }
  } catch (error) {
    if (!(error instanceof ConfigError || error instanceof StoreUnusable)) throw error
    process.stderr.write(`${error.message}\n`)
    return 1
  }
}
