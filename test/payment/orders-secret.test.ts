import assert from 'node:assert/strict'
import { test } from 'node:test'
import { delivered, nodeSays, OTHER_KEY, plainPoll } from '../support/orders.ts'
import { aShop } from '../support/shop.ts'

const FOREIGN = '33'.repeat(32)

test('the previous secret is needed for as long as an order of it is open or uncollected', async (t) => {
  const shop = await aShop(t)
  const foreign = () => shop.another({ secrets: [FOREIGN] }).foreign()
  const settled = await shop.paidAndSeen()
  const pending = await shop.quote(OTHER_KEY)
  assert.equal(await foreign(), 2)
  assert.equal(await shop.orders.foreign(), 0)

  const { publicId } = delivered(await shop.orders.poll(settled.orderId, plainPoll))
  await shop.use(publicId)
  assert.equal(await foreign(), 1)
  nodeSays(shop, 'dead')
  await shop.orders.poll(pending.orderId, plainPoll)
  assert.equal(await foreign(), 0)
})
