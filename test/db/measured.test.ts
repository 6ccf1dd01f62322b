import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Db, UnitRefused } from '../../src/db/db.ts'
import { measuredDb } from '../../src/db/measured.ts'

test('each way to ask the store is measured, a failure counts, and a refusal does not', async () => {
  let answer: () => Promise<never> = () => Promise.reject(new UnitRefused('order'))
  const ask = () => answer()
  const db = { read: ask, scan: ask, write: ask } as unknown as Db
  const told: string[] = []
  const measured = measuredDb(db, {
    began: (operation) => told.push(`${operation} began`),
    ended: (operation, _seconds, hasFailed) => told.push(`${operation} ${hasFailed}`),
  })
  const ways = [
    ['read', () => measured.read('')],
    ['read', () => measured.scan({} as never)],
    ['write', () => measured.write({} as never)],
  ] as const
  for (const hasFailed of [false, true]) {
    for (const [operation, way] of ways) {
      told.length = 0
      await assert.rejects(way())
      assert.deepEqual(told, [`${operation} began`, `${operation} ${hasFailed}`])
    }
    answer = () => Promise.reject(new Error('the disk is full'))
  }
})
