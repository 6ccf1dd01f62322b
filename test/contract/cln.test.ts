import { createCln } from '../../src/lightning/cln/cln.ts'
import { testClock } from '../support/server.ts'
import { CERTIFICATE } from '../support/stand-ins/certificate.ts'
import { startCln } from '../support/stand-ins/cln.ts'
import { createLedger } from '../support/stand-ins/ledger.ts'
import { lightningContract } from './lightning.ts'

lightningContract('Core Lightning (a stand-in)', async () => {
  const clock = testClock()
  const own = createLedger(clock)
  const standIn = await startCln({ clock, own })
  let payIndex = 0
  const lightning = createCln({
    baseUrl: standIn.baseUrl,
    rune: standIn.rune('invoice', 'listinvoices', 'waitanyinvoice', 'getinfo'),
    certificate: CERTIFICATE,
    private: false,
    clock,
    cursor: {
      read: async () => payIndex,
      write: async (value) => {
        payIndex = value
      },
    },
  })
  return {
    lightning,
    pay: async (bolt11) => own.pay(bolt11),
    makeExpire: async (seconds) => clock.advance(seconds * 1000),
    async close() {
      await lightning.close()
      await standIn.close()
    },
  }
})
