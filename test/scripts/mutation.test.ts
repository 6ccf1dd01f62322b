import assert from 'node:assert/strict'
import { suite, type TestContext, test } from 'node:test'
import { countedAs } from '../../mutation/counted-as.ts'
import { before, collect, test as declare, describe } from '../../mutation/node-test.ts'
import { type Report, survivorsOf, verdict } from '../../mutation/report.ts'
import { runTests } from '../../mutation/run-tests.ts'
import { changeOf, isSql, mutantsOf } from '../../mutation/sql.ts'

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

  test('a survivor in a generator is named by the generator', () => {
    const source = SOURCE.replace('function', 'async function*')
    assert.deepEqual(
      survivorsOf(aReport(source, 'Survived')).map((one) => one.in),
      ['isAdult'],
    )
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

suite('a mutant of SQL', () => {
  const changes = (text: string) =>
    mutantsOf(text).map((mutant) => {
      const { from, to } = changeOf(text, mutant)
      return `${from} → ${to}`
    })

  test('a change of a row loses each of its conditions and each of its assignments, and keeps its parameters', () => {
    const text =
      "update sale set state = 'paid', sum = sum + $2 where id = $1 and (at <= $3 or state in ('new', 'dead'))"
    const mutants = mutantsOf(text)
    const last = "(at <= $3 or state in ('new', 'dead'))"
    const all = [
      ['<=', '<'],
      ['+', '-'],
      ['id = $1', '(id = $1 or 1 = 1)'],
      [last, `(${last} or 1 = 1)`],
      ['at <= $3', '(at <= $3 and 1 = 0)'],
      ["state in ('new', 'dead')", "(state in ('new', 'dead') and 1 = 0)"],
      ["'new', ", ''],
      [", 'dead'", ''],
      ["'paid'", "case when 1 = 1 then state else 'paid' end"],
      ['sum + $2', 'case when 1 = 1 then sum else sum + $2 end'],
    ] as const
    assert.deepEqual(mutants.toSorted(), all.map(([from, to]) => text.replace(from, to)).toSorted())
  })

  test('a query loses its conditions, its limit and the direction of its order', () => {
    assert.deepEqual(
      mutantsOf('select min(at) from a where x is null order by at desc, id limit $1'),
      [
        'select min(at) from a where (x is null or 1 = 1) order by at desc, id limit $1',
        'select min(at) from a where x is null order by at, id limit $1',
        'select min(at) from a where x is null order by at desc, id desc limit $1',
        'select min(at) from a where x is null order by at desc, id limit 1000000 + $1',
        'select max(at) from a where x is null order by at desc, id limit $1',
      ],
    )
  })

  test('a row that is there already is no longer left alone, and a lock without a change has no mutant of that', () => {
    assert.deepEqual(mutantsOf('insert into a (id) values ($1) on conflict (id) do nothing'), [
      'insert into a (id) values ($1) ',
    ])
    assert.deepEqual(mutantsOf('update a set id = id'), [])
  })

  test('the clauses that stand in a hole of a template are no part of the condition before them', () => {
    assert.deepEqual(mutantsOf('select 1 from a where b \ue000 $1 \ue001 \ue002'), [
      'select 1 from a where (b \ue000 $1 or 1 = 1) \ue001 \ue002',
    ])
  })

  test('a mutant is told with the words around its change', () => {
    assert.deepEqual(changes('select a, b, c, d, e, f from a where b >= $1'), [
      'c, d, e, f from a where b >= $1 → c, d, e, f from a where b > $1',
      'b, c, d, e, f from a where b >= $1 → b, c, d, e, f from a where (b >= $1 or 1 = 1)',
    ])
  })

  test('a sentence is no SQL', () => {
    assert.equal(isSql('the order is dead and was not delivered'), false)
    assert.equal(isSql('update the plan with `--plan`'), false)
    assert.equal(isSql("(state = 'pending' or is_dead = 0)"), true)
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

  test('a module that a test imports while it runs is counted apart, and what the test then reaches as its own', async () => {
    const stryker: { currentTestId?: string; seen: unknown[] } = { currentTestId: 'one', seen: [] }
    Object.assign(globalThis, { __stryker__: stryker })
    const source =
      'const { seen, currentTestId } = globalThis.__stryker__; seen.push(currentTestId)'
    for (const id of ['loads: a', undefined])
      await import(`data:text/javascript,${encodeURIComponent(countedAs(id, source))}`)
    assert.deepEqual(stryker, { currentTestId: 'one', seen: ['loads: a', undefined] })
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
