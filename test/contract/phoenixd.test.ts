import { createPhoenixd } from '../../src/lightning/phoenixd/phoenixd.ts'
import { testClock } from '../support/server.ts'
import { createLedger } from '../support/stand-ins/ledger.ts'
import { startPhoenixd } from '../support/stand-ins/phoenixd.ts'
import { lightningContract } from './lightning.ts'

const GRACE_SECONDS = 600

lightningContract('phoenixd (a stand-in)', async () => {
  const clock = testClock()
  const own = createLedger(clock)
  const standIn = await startPhoenixd({ clock, own })
  const lightning = createPhoenixd({
    baseUrl: standIn.baseUrl,
    password: standIn.limitedPassword,
    certificate: undefined,
    clock,
  })
  return {
    lightning,
    pay: async (bolt11) => own.pay(bolt11),
    settleLate: own.settleLate,
    makeExpire: async (seconds) => clock.advance((seconds + GRACE_SECONDS + 1) * 1000),
    async close() {
      await lightning.close()
      await standIn.close()
    },
  }
})
