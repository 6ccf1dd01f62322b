/** Stands for `src/lightning/open.ts`: every process gets the node of the run. */
import type { Opened } from '../../../../src/lightning/open.ts'
import { world } from '../world.ts'

export const CURSORS = { lnd: 'lnd_settle_index', cln: 'cln_pay_index' } as const

export const openLightning = async (): Promise<Opened> => ({
  lightning: world().node.connect(),
  simulator: null,
  problem: null,
  close: async () => undefined,
})
