import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { readPlans, refuseUnknownProducts } from '../src/catalog.ts'
import { CATCH_PLANS, CatchPlan } from '../src/catch/schema.ts'
import { ConfigError, readConfig } from '../src/config.ts'
import { messageOf } from './support/config.ts'
import { temporaryFolder } from './support/folder.ts'

suite('the catalogue file', () => {
  async function read(t: { after(work: () => unknown): unknown }, content: string) {
    const file = join(await temporaryFolder(t), 'catalog.json')
    await writeFile(file, content)
    const { catalog } = readConfig({ MAYFLY_CATALOG: file })
    refuseUnknownProducts(catalog, ['catch'])
    return readPlans(catalog, 'catch', CatchPlan, CATCH_PLANS)
  }

  test('left out means the built-in plans', () => {
    assert.deepEqual(readPlans(null, 'catch', CatchPlan, CATCH_PLANS), CATCH_PLANS)
  })

  test('changes the fields that it names, and no others', async (t) => {
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
    test(`with ${what} stops the start, and says where`, async (t) => {
      await assert.rejects(read(t, content), (error) => {
        assert.ok(error instanceof ConfigError)
        assert.match(error.message, message)
        return true
      })
    })
  }

  test('that is not there stops the start', () => {
    assert.match(
      messageOf({ MAYFLY_CATALOG: '/nowhere/catalog.json' }),
      /^MAYFLY_CATALOG must be a readable JSON file \(ENOENT: .+\)\.$/,
    )
  })
})
