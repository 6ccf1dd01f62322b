import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { CATCH_PLANS, CatchPlan } from '../../src/catch/schema.ts'
import type { Product } from '../../src/lib/product-names.ts'
import { readPlans, refuseUnknownProducts } from '../../src/service/catalog.ts'
import { ConfigError, readConfig } from '../../src/service/config.ts'
import { readAllPlans, SOLD_FACTS } from '../../src/service/products.ts'
import { purchase } from '../support/buying.ts'
import { temporaryFolder } from '../support/folder.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { L402, paidOrderVia } from '../support/wallet-flow.ts'
import { messageOf } from './refusals.ts'

const CATCH = { product: 'catch', schema: CatchPlan, builtIn: CATCH_PLANS }

suite('the catalogue file', () => {
  async function read(t: { after(work: () => unknown): unknown }, content: string) {
    const file = join(await temporaryFolder(t), 'catalog.json')
    await writeFile(file, content)
    const { catalog } = readConfig({ MAYFLY_CATALOG: file })
    refuseUnknownProducts(catalog, ['catch'])
    return readPlans(catalog, CATCH)
  }

  test('a catalogue file that is left out means the built-in plans', () => {
    assert.deepEqual(readPlans(null, CATCH), CATCH_PLANS)
  })

  for (const { name, planSchema, plans } of SOLD_FACTS) {
    test(`a catalogue file could name the built-in plans of ${name}`, () => {
      const fields = ([id, { planId, ...rest }]: [string, { planId: string }]) => [id, rest]
      const file = { [name]: Object.fromEntries(Object.entries(plans).map(fields)) }
      const read = readPlans(file, { product: name, schema: planSchema, builtIn: plans })
      assert.deepEqual(read, plans)
    })
  }

  test('a catalogue file changes the fields that it names, and no others', async (t) => {
    const plans = await read(t, '{"catch": {"spark": {"priceSats": 7, "available": false}}}')
    assert.deepEqual(plans, {
      ...CATCH_PLANS,
      spark: { ...CATCH_PLANS.spark, priceSats: 7, available: false },
    })
  })

  const refused: [string, string, RegExp][] = [
    ['no JSON', '{"catch":', /^MAYFLY_CATALOG must be a readable JSON file \(.+\)\.$/],
    ['a list', '[]', /^MAYFLY_CATALOG: the file must be an object\.$/],
    [
      'a product that nobody sells',
      '{"cath": {}}',
      /^MAYFLY_CATALOG: the file has no member cath\.$/,
    ],
    [
      'a plan that is unknown',
      '{"catch": {"gold": {}}}',
      /^MAYFLY_CATALOG: catch has no member gold\.$/,
    ],
    [
      'a plan that is no object',
      '{"catch": {"spark": 7}}',
      /^MAYFLY_CATALOG: catch\.spark must be an object\.$/,
    ],
    [
      'a plan that is null',
      '{"catch": {"spark": null}}',
      /^MAYFLY_CATALOG: catch\.spark must be an object\.$/,
    ],
    ['a product that is null', '{"catch": null}', /^MAYFLY_CATALOG: catch must be an object\.$/],
    [
      'a price of nothing',
      '{"catch": {"spark": {"priceSats": 0}}}',
      /^MAYFLY_CATALOG: catch\.spark\.priceSats .+\.$/,
    ],
    [
      'half a satoshi',
      '{"catch": {"long": {"priceSats": 0.5}}}',
      /^MAYFLY_CATALOG: catch\.long\.priceSats .+\.$/,
    ],
    [
      'a price in words',
      '{"catch": {"spark": {"priceSats": "7"}}}',
      /^MAYFLY_CATALOG: catch\.spark\.priceSats .+\.$/,
    ],
    [
      'a limit of nothing',
      '{"catch": {"spark": {"requestLimit": 0}}}',
      /^MAYFLY_CATALOG: catch\.spark\.requestLimit .+\.$/,
    ],
    [
      'a field that is unknown',
      '{"catch": {"spark": {"pricesats": 7}}}',
      /^MAYFLY_CATALOG: catch\.spark.* .+\.$/,
    ],
  ]
  for (const [what, content, message] of refused) {
    test(`a catalogue file with ${what} stops the start, and says where`, async (t) => {
      await assert.rejects(read(t, content), (error) => {
        assert.ok(error instanceof ConfigError)
        assert.match(error.message, message)
        return true
      })
    })
  }

  test('a catalogue file that is not there stops the start', () => {
    assert.match(
      messageOf({ MAYFLY_CATALOG: '/nowhere/catalog.json' }),
      /^MAYFLY_CATALOG must be a readable JSON file \(ENOENT: .+\)\.$/,
    )
  })
})

suite('a number of the catalogue', () => {
  /** Every number of every product, and the most that it may be. */
  const MOST: Record<Product, Record<string, number>> = {
    catch: {
      priceSats: 100_000_000,
      durationSeconds: 10 * 365 * 86_400,
      requestLimit: 1_000_000_000,
      storageLimitBytes: 1024 ** 4,
      maxBytesPerRequest: 15 * 1024 ** 2,
    },
    whisper: {
      priceSats: 100_000_000,
      durationSeconds: 10 * 365 * 86_400,
      readLimit: 402,
      maxCiphertextBytes: 31 * 1024 ** 2,
    },
    pulse: {
      priceSats: 100_000_000,
      durationSeconds: 10 * 365 * 86_400,
      heartbeatLimit: 1_000_000_000,
      suggestedCadenceSeconds: 604_800,
      minimumGraceSeconds: 604_800,
    },
  }
  const products = Object.keys(MOST) as Product[]

  test('each number of the catalogue has a maximum', () => {
    for (const [product, plans] of Object.entries(readAllPlans(null))) {
      for (const plan of Object.values(plans)) {
        const numbers = Object.entries(plan).filter(([, value]) => typeof value === 'number')
        assert.deepEqual(
          numbers.map(([field]) => field).sort(),
          Object.keys(MOST[product as Product]).sort(),
        )
      }
    }
  })

  for (const product of products) {
    for (const [field, most] of Object.entries(MOST[product])) {
      test(`a catalogue that gives ${product} more than ${most} as ${field} stops the start, and the number is named`, () => {
        for (const tooMuch of [most + 1, 1e13, 1e19]) {
          assert.throws(
            () => readAllPlans({ [product]: { spark: { [field]: tooMuch } } }),
            (error) => {
              assert.ok(error instanceof ConfigError)
              assert.equal(
                error.message,
                `MAYFLY_CATALOG: ${product}.spark.${field} must be <= ${most}.`,
              )
              return true
            },
          )
        }
      })
    }
  }

  test('a number of the catalogue is whole, and not so small that nothing would be sold', () => {
    for (const [plans, field] of [
      [{ whisper: { spark: { readLimit: 0 } } }, 'whisper.spark.readLimit'],
      [{ whisper: { spark: { maxCiphertextBytes: 29 } } }, 'whisper.spark.maxCiphertextBytes'],
      [{ pulse: { spark: { heartbeatLimit: 0 } } }, 'pulse.spark.heartbeatLimit'],
      [{ pulse: { spark: { minimumGraceSeconds: 1.5 } } }, 'pulse.spark.minimumGraceSeconds'],
    ] as const) {
      assert.throws(() => readAllPlans(plans), {
        message: new RegExp(`^MAYFLY_CATALOG: ${field} `),
      })
    }
  })

  for (const product of products) {
    test(`a plan of ${product} at its maximum is sold, paid, delivered and proved by our own token`, async (t) => {
      const file = join(await temporaryFolder(t), 'catalog.json')
      await writeFile(file, JSON.stringify({ [product]: { spark: MOST[product] } }))
      const server = await startServer(t, { MAYFLY_CATALOG: file })
      await buyAtMaximum(server, product)
    })
  }
})

/** Buys a spark the way an L402 client does, whose token has to be good for the whole of its life. */
async function buyAtMaximum(server: TestServer, product: Product): Promise<void> {
  const bytes = {
    body: randomBytes(64),
    headers: { 'content-type': 'application/octet-stream', 'x-whisper-plan': 'spark' },
  }
  const target = `/api/payments/${product}`
  const { ask } = await paidOrderVia(server, L402, {
    target,
    ...(product === 'whisper' ? bytes : {}),
  })
  const delivered = await purchase(server, ask)
  assert.equal(delivered.status, 200, delivered.text)
  const { resource } = JSON.parse(delivered.text) as { resource: { expiresAt: string } }
  const tenYears = 10 * 365 * 86_400 * 1000
  const life = Date.parse(resource.expiresAt) - server.now()
  assert.ok(Math.abs(life - tenYears) < 120_000, resource.expiresAt)
}
