import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pino } from 'pino'
import { createApp } from '../../src/http/app.ts'
import { mountHealth } from '../../src/http/server/health.ts'
import { mountSimulator } from '../../src/http/server/simulator.ts'
import { aShop } from '../support/shop.ts'

test('a payment is answered only when its settlement is in the store', async (t) => {
  const { node, quote } = await aShop(t)
  const { bolt11, paymentHash } = await quote()
  const [told, stored] = [Promise.withResolvers<string>(), Promise.withResolvers<void>()]
  const log = pino({ level: 'silent' })
  const app = await createApp({ log })
  t.after(() => app.close())
  mountHealth(app)
  mountSimulator(app, {
    simulator: node.simulator,
    onPaid: (hash) => {
      told.resolve(hash)
      return stored.promise
    },
  })
  const answers: string[] = []
  const paying = app
    .inject({ method: 'POST', url: '/simulator/pay', payload: { bolt11 } })
    .then(({ statusCode }) => answers.push(`paid ${statusCode}`))
  assert.equal(await Promise.race([told.promise, paying]), paymentHash)
  for (let i = 0; i < 10; i++) await app.inject('/health')
  assert.deepEqual(answers, [])
  stored.resolve()
  await paying
  assert.deepEqual(answers, ['paid 200'])
})
