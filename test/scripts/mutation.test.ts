import assert from 'node:assert/strict'
import { suite, type TestContext, test } from 'node:test'
import { before, collect, test as declare, describe } from '../../mutation/node-test.ts'
import { type Report, survivorsOf, verdict } from '../../mutation/report.ts'
import { runTests } from '../../mutation/run-tests.ts'

const SOURCE = `export function isAdult(age: number): boolean {
  return age >= 18
}
`

suite('a survivor of the mutation tests', () => {
  test('a survivor is named by its function and its text, wherever its line is', () => {
    const [one] = survivorsOf(aReport(SOURCE, 'Survived'))
    const [moved] = survivorsOf(aReport(`// A comment.\n\n${SOURCE}`, 'Survived'))
    assert.deepEqual(one, {
      file: 'src/a.ts',
      line: 2,
      status: 'Survived',
      in: 'isAdult',
      from: 'age >= 18',
      to: 'age > 18',
    })
    assert.deepEqual(moved, { ...one, line: 4 })
  })

  test('a survivor fails the run unless its reason is known, and so does a reason without a survivor', () => {
    const why = { in: 'isAdult', from: 'age >= 18', to: 'age > 18', why: 'nobody is exactly 18' }
    const survived = aReport(SOURCE, 'Survived')
    assert.equal(verdict('a', survived, {}).isGood, false)
    assert.equal(verdict('a', survived, { 'src/a.ts': [why] }).isGood, true)
    assert.equal(verdict('a', aReport(SOURCE, 'Killed'), {}).isGood, true)
    assert.equal(verdict('a', aReport(SOURCE, 'Killed'), { 'src/a.ts': [why] }).isGood, false)
    assert.equal(verdict('a', aReport(SOURCE, 'NoCoverage'), {}).isGood, false)
  })
})

suite('the runner of the mutation tests', () => {
  test('the runner prepares a suite once, and runs its tests as often as it is asked', async () => {
    const seen: string[] = []
    const tests = await collect('a.test.ts', async () => {
      describe('a suite', () => {
        before(() => seen.push('before'))
        declare('one', (t: TestContext) => {
          t.after(() => seen.push('after one'))
          seen.push('one')
        })
        declare('two', () => assert.fail('broken'))
        declare('three', () => seen.push('three'))
      })
    })
    const first = await runTests(tests, () => {}, { isBailing: true })
    await runTests(tests.slice(2), () => {}, { isBailing: true })
    assert.deepEqual(seen, ['before', 'one', 'after one', 'three'])
    assert.deepEqual(
      first.map(({ test: { id }, failure }) => [id, failure]),
      [
        ['a.test.ts › a suite › one', undefined],
        ['a.test.ts › a suite › two', 'AssertionError: broken'],
      ],
    )
  })
})

function aReport(source: string, status: string): Report {
  const line = source.split('\n').findIndex((text) => text.includes('age >= 18')) + 1
  const mutant = {
    status,
    mutatorName: 'EqualityOperator',
    replacement: 'age > 18',
    location: { start: { line, column: 10 }, end: { line, column: 19 } },
  }
  return { files: { 'src/a.ts': { source, mutants: [mutant] } } }
}
