import type { Durability, Statement, Unit } from '../../src/db/db.ts'

/** These statements as one unit, for tests that do not need their results by name. */
export const unit = (...statements: Statement[]): Unit<'all'> => ({
  lockKey: 'a test',
  statements: { all: statements },
})

/** The same unit with another durability. */
export const withDurability = (durability: Durability, one: Unit<'all'>): Unit<'all'> => ({
  ...one,
  durability,
})
