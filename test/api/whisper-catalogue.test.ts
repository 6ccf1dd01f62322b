import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { temporaryFolder } from '../support/folder.ts'
import { startServer } from '../support/server.ts'
import {
  delivered,
  openWhisperOrder,
  purchaseWhisper,
  REUSED,
  read,
  refusal,
  short,
} from '../support/whisper.ts'

suite('the catalogue', () => {
  test('the catalogue says exactly what is on sale', async (t) => {
    const server = await startServer(t)
    const { products } = await server.mayfly.catalog()
    assert.deepEqual(products.whisper, {
      description:
        'A secret that you encrypt before uploading it. It can be read a set number of times, from a time you choose. Simulator: no real money moves.',
      clientEncryption: 'AES-256-GCM',
      plans: [
        {
          planId: 'spark',
          priceSats: 21,
          durationLabel: '24 hours',
          bestFor: 'One password for one person',
          available: true,
          readLimit: 3,
          maxCiphertextBytes: 65_536,
        },
        {
          planId: 'standard',
          priceSats: 121,
          durationLabel: '7 days',
          bestFor: 'A document for a team',
          available: true,
          readLimit: 42,
          maxCiphertextBytes: 1_048_576,
        },
        {
          planId: 'long',
          priceSats: 402,
          durationLabel: '30 days',
          bestFor: 'A file for many readers',
          available: true,
          readLimit: 402,
          maxCiphertextBytes: 8_388_608,
        },
      ],
    })
  })

  for (const [plan, why] of [
    [{ readLimit: 403 }, 'a read limit above 402'],
    [{ readLimit: 0 }, 'no reads'],
    [{ maxCiphertextBytes: 29 }, 'a ciphertext below 30'],
    [{ maxCiphertextBytes: 2 ** 40 }, 'a ciphertext that no memory holds'],
    [{ reads: 3 }, 'an unknown field'],
  ] as const) {
    test(`a catalogue with ${why} stops the start`, async (t) => {
      const file = await aCatalog(t, { whisper: { spark: plan } })
      await assert.rejects(
        startServer(t, { MAYFLY_CATALOG: file }),
        /MAYFLY_CATALOG: whisper\.spark/,
      )
    })
  }

  test('an unavailable plan is not sold, but a quote from before is', async (t) => {
    const environment: Record<string, string> = {}
    const server = await startServer(t, environment)
    const key = randomUUID()
    const quote = await openWhisperOrder(server, { key })
    environment.MAYFLY_CATALOG = await aCatalog(t, {
      whisper: {
        spark: { available: false, readLimit: 2, maxCiphertextBytes: 30 },
        standard: { maxCiphertextBytes: 30 },
        long: { maxCiphertextBytes: 64 },
      },
    })
    await server.stop()
    await server.restart()
    assert.deepEqual(short(await purchaseWhisper(server)), refusal('invalid plan'))
    // Without a read limit the order's own plan decides, not the one on sale now.
    assert.deepEqual(await openWhisperOrder(server, { key }), quote)
    assert.deepEqual(await openWhisperOrder(server, { key, readLimit: 3 }), quote)
    assert.deepEqual(short(await purchaseWhisper(server, { key, readLimit: 2 })), REUSED)
    await server.pay(quote.bolt11)
    const whisper = await delivered(server, quote, key)
    for (const status of [200, 200, 200, 404]) {
      assert.equal((await read(server, whisper)).status, status)
    }
  })
})

async function aCatalog(t: Parameters<typeof temporaryFolder>[0], plans: object): Promise<string> {
  const file = join(await temporaryFolder(t), 'plans.json')
  await writeFile(file, JSON.stringify(plans))
  return file
}
