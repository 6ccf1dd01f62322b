import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { test } from 'node:test'
import { LARGEST_BODY } from '../../src/http/memory.ts'
import { PULSE_PLANS } from '../../src/pulse/schema.ts'
import { WHISPER_PLANS } from '../../src/whisper/schema.ts'
import { payAndSettle, purchase } from '../support/buying.ts'
import { anInbox } from '../support/catch.ts'
import { jsonFile } from '../support/folder.ts'
import { startServer } from '../support/server.ts'

test('the catalogue says exactly what is on sale', async (t) => {
  const server = await startServer(t)
  const answer = await fetch(`${server.url}/api/catalog`)
  assert.equal(answer.status, 200)
  assert.deepEqual(await answer.json(), {
    checkoutEnabled: true,
    currency: 'sat',
    products: {
      catch: {
        description:
          'A webhook inbox that stores every request exactly as it was sent, for its owner only. Simulator: no real money moves.',
        plans: [
          {
            planId: 'spark',
            priceSats: 100,
            durationLabel: '24 hours',
            bestFor: 'Trying out a webhook',
            available: true,
            requestLimit: 100,
            storageLimitBytes: 5_242_880,
            maxBytesPerRequest: 65_536,
          },
          {
            planId: 'standard',
            priceSats: 400,
            durationLabel: '7 days',
            bestFor: 'Building an integration for a week',
            available: true,
            requestLimit: 1_000,
            storageLimitBytes: 52_428_800,
            maxBytesPerRequest: 262_144,
          },
          {
            planId: 'long',
            priceSats: 900,
            durationLabel: '30 days',
            bestFor: 'Real traffic for a month',
            available: true,
            requestLimit: 10_000,
            storageLimitBytes: 262_144_000,
            maxBytesPerRequest: 1_048_576,
          },
        ],
      },
      whisper: {
        description:
          'A secret that you encrypt before uploading it. It can be read a set number of times, from a time you choose. Simulator: no real money moves.',
        clientEncryption: 'AES-256-GCM',
        plans: Object.values(WHISPER_PLANS).map(({ durationSeconds: _, ...shown }) => shown),
      },
      pulse: {
        description:
          'A heartbeat monitor that turns late when a job stops pinging it. Simulator: no real money moves.',
        plans: Object.values(PULSE_PLANS).map(({ durationSeconds: _, ...shown }) => shown),
      },
    },
  })
})

test('an order keeps its plan and price when the catalogue takes the plan off sale under it', async (t) => {
  const file = await jsonFile(t, {})
  const server = await startServer(t, { MAYFLY_CATALOG: file })
  const key = randomUUID()
  const first = await purchase(server, { key })
  const spark = { priceSats: 999, durationSeconds: 60, requestLimit: 1, storageLimitBytes: 1 }
  await writeFile(file, JSON.stringify({ catch: { spark: { ...spark, available: false } } }))
  await server.restart()

  const refused = await purchase(server)
  assert.deepEqual([refused.status, refused.text], [400, '{"error":"invalid plan"}'])
  const { products } = await server.mayfly.catalog()
  assert.deepEqual(
    products.catch.plans.map(({ planId, available }) => [planId, available]),
    [
      ['spark', false],
      ['standard', true],
      ['long', true],
    ],
  )
  const repeated = await purchase(server, { key })
  assert.equal(repeated.text, first.text)
  await payAndSettle(server, JSON.parse(repeated.text))
  const { resource } = JSON.parse((await purchase(server, { key })).text)
  const status = await server.mayfly.catch(resource).status()
  assert.equal(status.requestLimit, 100)
  assert.equal(status.storageLimitBytes, 5_242_880)
  assert.equal(Date.parse(status.expiresAt) - Date.parse(status.createdAt), 24 * 60 * 60 * 1000)
})

test('the largest body that a plan can allow finds room, declared or in chunks', async (t) => {
  const file = await jsonFile(t, {
    catch: {
      spark: { maxBytesPerRequest: LARGEST_BODY.inbox, storageLimitBytes: 4 * LARGEST_BODY.inbox },
    },
    whisper: { spark: { maxCiphertextBytes: LARGEST_BODY.purchase } },
  })
  const server = await startServer(t, { MAYFLY_CATALOG: file })
  const { publicId } = await anInbox(server)
  const send = async (path: string, body: BodyInit, headers = {}): Promise<number> => {
    const asked = { method: 'POST', body, headers, duplex: 'half' } as const
    const { status } = await fetch(server.url + path, asked)
    return status
  }
  for (const form of ['declared', 'in chunks']) {
    const bodyOf = (bytes: number): BodyInit => {
      const blob = new Blob([new Uint8Array(bytes)])
      return form === 'declared' ? blob : blob.stream()
    }
    assert.equal(await send(`/c/${publicId}`, bodyOf(LARGEST_BODY.inbox)), 204, form)
    const headers = {
      'idempotency-key': randomUUID(),
      'x-whisper-plan': 'spark',
      'content-type': 'application/octet-stream',
    }
    const status = await send('/api/payments/whisper', bodyOf(LARGEST_BODY.purchase), headers)
    assert.equal(status, 402, form)
  }
})
