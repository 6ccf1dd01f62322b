import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createNews } from '../../src/http/streams.ts'

const LONG = 2 ** 31 - 1

test('news that come before a wait end it at once, and only this one', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const news = createNews(() => true)
  news.wake()
  news.wake()
  await news.wait(LONG)
  let isOver = false
  const second = news.wait(1_000).then(() => {
    isOver = true
  })
  t.mock.timers.tick(999)
  await new Promise((resolve) => setImmediate(resolve))
  assert.equal(isOver, false)
  t.mock.timers.tick(1)
  await second
})

test('news end the wait for them, and where there is nothing to wait for there is no wait', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  let isOpen = true
  const news = createNews(() => isOpen)
  const waiting = news.wait(LONG)
  news.wake()
  await waiting
  isOpen = false
  await news.wait(LONG)
})
