import { systemClock } from '../../src/lib/clock.ts'
import { createLnd } from '../../src/lightning/lnd/lnd.ts'
import { missingNodes, startTestbed } from '../support/nodes/testbed.ts'
import { lightningContract } from './lightning.ts'

lightningContract(
  'LND',
  async () => {
    const testbed = await startTestbed()
    const { alice } = testbed
    let settleIndex = 0
    const lightning = createLnd({
      baseUrl: alice.baseUrl,
      macaroon: await alice.bake('invoices:read', 'invoices:write', 'info:read'),
      certificate: alice.certificate(),
      clock: systemClock,
      cursor: {
        read: async () => settleIndex,
        write: async (value) => {
          settleIndex = value
        },
      },
    })
    return {
      lightning,
      pay: testbed.pay,
      async close() {
        await lightning.close()
        await testbed.close()
      },
    }
  },
  { skip: await missingNodes() },
)
