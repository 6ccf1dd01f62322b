import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { promisesPage, SECTIONS, titlesIn } from '../../scripts/promises/page.ts'
import { readRuns, withPlant, withRun } from '../../scripts/promises/runs.ts'

const FILE = 'test/scripts/promises.test.ts'
const THERE = 'a promise that is shown by a test which is there is on the page'

suite('the page of promises', () => {
  const withOne = (title: string) => [
    ...SECTIONS,
    { title: 'Odd', promises: [{ says: 'Odd.', tests: { [FILE]: [title] } }], not: [] },
  ]

  test('a promise that is shown by a test which is there is on the page', () => {
    assert.ok(promisesPage(withOne(THERE)).includes(`- **Odd.**\n  - \`${FILE}\`: ${THERE}\n`))
  })

  test('a promise whose test is gone, or was named anew, makes no page', () => {
    const title = THERE.replace('which', 'that')
    assert.throws(() => promisesPage(withOne(title)), {
      message: `docs/promises.md:\n  ${FILE} has no test "${title}"`,
    })
  })

  test('an invariant of the simulation, and a suite of faults, that no promise names make no page', () => {
    const without = SECTIONS.map((section) => ({
      ...section,
      promises: section.promises.filter(
        ({ simulated = [], tests = {} }) =>
          !simulated.includes('stored once') && !('test/faults/places.faults.ts' in tests),
      ),
    }))
    assert.throws(
      () => promisesPage(without),
      /the invariant "stored once"\n {2}.*places\.faults\.ts$/,
    )
  })

  test('a planted mistake that no run has found makes no page', () => {
    const { 'a ping is counted twice': _, ...plants } = readRuns().plants
    assert.throws(
      () => promisesPage(SECTIONS, { ...readRuns(), plants }),
      /no run has found this plant: .*"a ping is counted twice"$/,
    )
  })

  test('a planted mistake that is gone, and a suite of faults that is gone, make no page', () => {
    const plants = { ...readRuns().plants, 'a ping is lost': 7 }
    assert.throws(
      () => promisesPage(SECTIONS, { ...readRuns(), plants }),
      /has a plant that is gone: "a ping is lost"$/,
    )
    assert.throws(
      () => promisesPage(SECTIONS, readRuns(), '`test/faults/postgres.faults.ts`, `test/gone.ts`'),
      /faults\.md names test\/gone\.ts, which is gone/,
    )
  })

  test('the last run of each command is noted, and by which run each plant was found', () => {
    const [first, second] = ['1', '2'].map((n) => ({ command: n, date: '2026-01-01', result: n }))
    assert.ok(first && second)
    const known = { runs: [first, second], plants: { a: 1 } }
    const again = { ...first, result: 'more' }
    assert.deepEqual(withRun(known, again), { runs: [second, again], plants: { a: 1 } })
    assert.deepEqual(withPlant(known, { name: 'b', run: 2 }).plants, { a: 1, b: 2 })
  })
})

test('a title is found in any quotes, with a dot for each part that varies', () => {
  const text =
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the text of a test.
    "test('it’s \\'one\\'', f)\n  test(\n`a ${x(1)} b`, g)\n t.test(\"two\") pretest('three')"
  assert.deepEqual([...titlesIn(text)], ["it’s 'one'", 'a … b', 'two'])
})
