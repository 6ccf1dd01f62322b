/** Stands for `src/service/instances.ts`: processes share leases in the store, and hints that may come late or never. */
import { createHints } from '../../../../src/db/hints.ts'
import { createInTurn } from '../../../../src/db/leases.ts'
import { openMemoryBucket } from '../../../../src/http/limits.ts'
import type { joinInstances as real } from '../../../../src/service/instances.ts'
import { thisProcess, world } from '../world.ts'

export { CONNECTIONS_BESIDE_STORE } from '../../../../src/service/instances.ts'

const LOST = 0.05
const LATEST_MS = 300

export const joinInstances: typeof real = async (_where, { db, clock }) => {
  const { scheduler, hints: others } = world()
  const process = thisProcess()
  const local = createHints()
  others.set(process, local.notify)
  process.onDeath.add(() => others.delete(process))
  return {
    hints: {
      ...local,
      notify(topic) {
        local.notify(topic)
        for (const [other, notify] of others) {
          if (other === process || scheduler.random.chance(LOST)) continue
          scheduler.after(scheduler.random.next() * LATEST_MS, () => notify(topic), other)
        }
      },
      async close() {
        others.delete(process)
        await local.close()
      },
    },
    inTurn: createInTurn(db, clock.now),
    openBucket: openMemoryBucket,
    purge: async () => undefined,
    close: local.close,
  }
}
