import assert from 'node:assert/strict'
import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { test } from 'node:test'
import { startServer } from '../support/server.ts'

test('a page that could not be read is there once it can be, without a restart', async (t) => {
  const { url } = await startServer(t)
  const visit = () => fetch(url, { headers: { accept: 'text/html' } })
  const full = t.mock.method(fs, 'readdirSync', () => {
    throw Object.assign(new Error('too many open files'), { code: 'EMFILE' })
  })
  syncBuiltinESMExports()
  assert.equal((await visit()).status, 500)
  full.mock.restore()
  syncBuiltinESMExports()
  const page = await visit()
  assert.equal(page.status, 200)
  assert.match(await page.text(), /<html/)
})
