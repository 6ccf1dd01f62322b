/** Deleting unpaid intents where the operator honours one of them at once, whichever engine the other tests have. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { askProviderAgain, purgeUnpaid } from '../../src/gate/store.ts'
import { duringChange } from '../support/locks.ts'
import { aPostgresDatabase } from '../support/postgres.ts'
import { aGateStore, anIntent, authorized, END } from './rows.ts'

for (const [what, change] of [
  ['whose provider the operator lets us ask again', [askProviderAgain('honoured', END + 2)]],
  ['that a proof authorizes', authorized('honoured', 'q').slice(0, 1)],
] as const) {
  test(`an intent ${what} while unpaid ones are deleted stays`, async (t) => {
    const databaseUrl = await aPostgresDatabase()
    const { run, insert, intents } = await aGateStore(t, databaseUrl)
    for (const name of ['honoured', 'unpaid']) await insert(anIntent(name, 'q'))
    await duringChange(t, { databaseUrl, change: [...change] }, () =>
      run(purgeUnpaid(END + 1, 500)),
    )
    assert.deepEqual(await intents(), ['honoured'])
  })
}
