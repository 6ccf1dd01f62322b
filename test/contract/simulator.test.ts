import { createSimulator } from '../../src/lightning/simulator.ts'
import { testClock } from '../support/server.ts'
import { aDatabaseUrl, openDatabase } from '../support/store.ts'
import { lightningContract } from './lightning.ts'

lightningContract('simulator', async () => {
  const sweeps: (() => unknown)[] = []
  const db = await openDatabase(await aDatabaseUrl({ after: (sweep) => sweeps.push(sweep) }))
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
      for (const sweep of sweeps) await sweep()
    },
  }
})
