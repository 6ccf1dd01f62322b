/** What becomes of a call that is under way when its backend is closed. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { systemClock } from '../../../src/lib/clock.ts'
import { createCln } from '../../../src/lightning/cln/cln.ts'
import { createLnd } from '../../../src/lightning/lnd/lnd.ts'
import { createPhoenixd } from '../../../src/lightning/phoenixd/phoenixd.ts'
import { serve } from '../../support/serving.ts'
import { until } from '../../support/until.ts'

const cursor = { read: async () => 0, write: async () => {} }
const COMMON = {
  clock: systemClock,
  cursor,
  certificate: undefined,
  private: false,
  timeouts: { infoMs: 60_000 },
}

for (const [name, create] of Object.entries({
  LND: (baseUrl: string) => createLnd({ ...COMMON, baseUrl, macaroon: '02' }),
  'Core Lightning': (baseUrl: string) => createCln({ ...COMMON, baseUrl, rune: 'rune' }),
  phoenixd: (baseUrl: string) => createPhoenixd({ ...COMMON, baseUrl, password: 'x' }),
})) {
  test(`closing ${name} ends the call that is under way, whose node may never answer`, async (t) => {
    let asked = 0
    const url = await serve(t, () => void asked++)
    const node = create(url)
    const info = assert.rejects(node.info(), { name: 'NodeError', reason: 'unreachable' })
    await until('the question', () => asked === 1)
    await node.close()
    await info
  })
}
