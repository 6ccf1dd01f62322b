/** One testbed for the suites of a process that leave both nodes as they found them. */
import { after, before } from 'node:test'
import { startTestbed, type Testbed } from '../support/nodes/testbed.ts'
import { type Books, openBooks } from './lnd-market.ts'

export type SharedNodes = {
  readonly testbed: Testbed
  /** The books of alice. All suites enter what they sold, so each closes on what was sold so far. */
  readonly books: Books
}

let users = 0
let started: Promise<{ testbed: Testbed; books: Books }> | undefined

/** Called in the body of a suite. The first suite that runs starts the nodes, and the last one stops them. */
export function shareNodes(): SharedNodes {
  users++
  let shared: SharedNodes | undefined
  before(async () => {
    started ??= start()
    shared = await started
  })
  after(async () => {
    users--
    if (users > 0) return
    const running = await started
    started = undefined
    await running?.testbed.close()
  })
  const nodes = (): SharedNodes => {
    if (!shared) throw new Error('the suite has not begun')
    return shared
  }
  return {
    get testbed() {
      return nodes().testbed
    },
    get books() {
      return nodes().books
    },
  }
}

async function start(): Promise<{ testbed: Testbed; books: Books }> {
  const testbed = await startTestbed()
  return { testbed, books: openBooks(testbed.alice) }
}
