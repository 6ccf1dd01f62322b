/** Stands for `node:crypto` in the service: the same, with random bytes of the run's seed. */
import * as real from 'node:crypto'
import { uuidV4 } from '../globals.ts'
import { isSimulating, world } from '../world.ts'

export * from 'node:crypto'

export const randomBytes = (size: number): Buffer =>
  isSimulating() ? Buffer.from(world().scheduler.random.bytes(size)) : real.randomBytes(size)

export const randomUUID = (): string => (isSimulating() ? uuidV4() : real.randomUUID())
