/**
 * Adds mutants of SQL (`sql.ts`) to those that Stryker makes, and one of each `expect`, which is how a statement
 * refuses. Stryker has no way to add mutants, so this adds to its own list. It is loaded like a plugin.
 */
import { pathToFileURL } from 'node:url'
import { isSql, mutantsOf } from './sql.ts'

type Node = { type: string; [field: string]: unknown }
type Path = { node: Node; parent: Node }
type Quasi = { value: { raw: string } }
type Mutator = { name: string; mutate(path: Path): Iterable<unknown> }

export const SQL_MUTATOR = 'Sql'
export const EXPECT_MUTATOR = 'Expect'
export const strykerValidationSchema = { properties: {} }

const FIRST_HOLE = 0xe000

const mutator: Mutator = {
  name: SQL_MUTATOR,
  *mutate({ node, parent }) {
    if (node.type === 'TemplateLiteral') {
      const text = (node.quasis as Quasi[])
        .map(({ value }, i) => (i === 0 ? '' : String.fromCharCode(FIRST_HOLE + i - 1)) + value.raw)
        .join('')
      if (!isSql(text)) return
      for (const mutant of mutantsOf(text)) yield template(mutant, node.expressions as Node[])
    } else if (node.type === 'StringLiteral' && !parent.type.startsWith('TS')) {
      const text = String(node.value)
      if (!isSql(text)) return
      for (const value of mutantsOf(text)) yield { type: 'StringLiteral', value }
    }
  },
}

/** A unit with a statement whose rows are not counted. */
const expectMutator: Mutator = {
  name: EXPECT_MUTATOR,
  *mutate({ node, parent }) {
    const key = parent.key as Node | undefined
    const isExpect = parent.type === 'ObjectProperty' && key?.name === 'expect'
    if (isExpect && parent.value === node && node.type !== 'Identifier') {
      yield { type: 'Identifier', name: 'undefined' }
    }
  },
}

/** The same expressions in other places: a mutant may have one twice, or not at all. */
function template(text: string, expressions: Node[]): Node {
  const parts = text.split(/([\ue000-\uf8ff])/)
  const quasis = parts
    .filter((_, i) => i % 2 === 0)
    .map((raw, i, all) => ({
      type: 'TemplateElement',
      value: { raw, cooked: raw },
      tail: i === all.length - 1,
    }))
  const used = parts
    .filter((_, i) => i % 2 === 1)
    .map((hole) => structuredClone(expressions[hole.charCodeAt(0) - FIRST_HOLE]))
  return { type: 'TemplateLiteral', quasis, expressions: used }
}

const instrumenter = process.env.MAYFLY_MUTATION_INSTRUMENTER
if (instrumenter !== undefined) {
  const { allMutators } = (await import(
    pathToFileURL(`${instrumenter}/dist/src/mutators/index.js`).href
  )) as { allMutators: Mutator[] }
  allMutators.push(mutator, expectMutator)
}
