/**
 * The source of a module whose body Stryker counts as `id`'s. After it, counting goes on as before: a test that imports
 * a module while it runs still reaches what it reaches afterwards.
 */
export const countedAs = (id: string | undefined, source: string): string =>
  `const countedBefore = ${CURRENT}; ${CURRENT} = ${JSON.stringify(id)}; ${source}
;${CURRENT} = countedBefore`

const CURRENT = 'globalThis.__stryker__.currentTestId'
