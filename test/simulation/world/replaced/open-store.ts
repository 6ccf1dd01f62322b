/** Stands for `src/db/open.ts`: every process gets the store of the run. */
import type { Db } from '../../../../src/db/db.ts'
import { thisProcess, world } from '../world.ts'

export const openStore = async (): Promise<Db> => world().disk.connect(thisProcess())

export const prepareStore = async (): Promise<void> => undefined
