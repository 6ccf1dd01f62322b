import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pino } from 'pino'
import { createSecrets } from '../../src/secrets/secrets.ts'
import { readConfig } from '../../src/service/config.ts'
import { openAlerts } from '../../src/service/outbound-rules.ts'
import { testClock } from '../support/server.ts'
import { aDatabaseUrl, openDatabase } from '../support/store.ts'

test('no operator makes the service of a real network call private servers for anybody', async (t) => {
  const db = await openDatabase(await aDatabaseUrl(t))
  t.after(() => db.close())
  const open = async (network: 'mainnet' | 'signet', hosts: string) =>
    openAlerts(readConfig({ MAYFLY_ALLOWED_HOSTS: hosts }), {
      db,
      network,
      clock: testClock(),
      log: pino({ level: 'silent' }),
      secrets: createSecrets([new Uint8Array(32)]),
      publicUrl: () => 'https://mayfly.example.com',
      inboxes: () => null,
    })
  const expected = { name: 'ConfigError', message: /^MAYFLY_ALLOWED_HOSTS must be empty/ }
  await assert.rejects(open('mainnet', '10.0.0.1:80'), expected)
  for (const [network, hosts] of [
    ['mainnet', ''],
    ['signet', '10.0.0.1:80'],
  ] as const) {
    const alerts = await open(network, hosts)
    await alerts.close()
  }
})
