import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { migrate } from '../../src/db/migrate.ts'
import { openSqlite } from '../../src/db/sqlite.ts'
import { createSimulator } from '../../src/lightning/simulator.ts'
import { testClock } from '../support/server.ts'
import { lightningContract } from './lightning.ts'

lightningContract('simulator', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'mayfly-'))
  const db = await openSqlite(join(folder, 'mayfly.db'))
  await migrate(db)
  const clock = testClock()
  const lightning = await createSimulator({ db, clock })
  return {
    lightning,
    async pay(bolt11) {
      const outcome = await lightning.pay(bolt11)
      if (outcome.kind !== 'paid') throw new Error(outcome.kind)
      return outcome.preimage
    },
    makeExpire: async (seconds) => clock.advance(seconds * 1000),
    async close() {
      await db.close()
      await rm(folder, { recursive: true, force: true })
    },
  }
})
