/** GATE in a run: its operator, its projects with their servers, and who visits them. */
import { readGateKeys, verifyReceipt } from '../../../src/protocol/gate-receipt.ts'
import type { Run } from '../run-context.ts'
import { clientStory } from './client.ts'
import { createOperator, grantedCredits } from './operator.ts'
import { openShop, type Shop } from './shop.ts'
import { createTown, type Project, type Town } from './town.ts'
import { visitorStory } from './visitor.ts'

export type Market = {
  /** One visitor of a project's server, or one project that speaks to the service itself. */
  story(who: string): Promise<void>
  /** Resolves when the operator has nothing to do any more. */
  closes: Promise<void>
  /** Compares the store with what was told. @returns the credits that each project was given. */
  balance(): Promise<Record<string, number>>
}

type Stand = { project: Project; shop: Shop }

const BETWEEN_MS = 15_000

export function openMarket(run: Run): Market {
  const { random, sleep } = run.world.scheduler
  const town = createTown(run)
  const operator = createOperator(town)
  const opened = Promise.all(
    Array.from({ length: random.int(1, 3) }, async (): Promise<Stand> => {
      const project = await operator.addProject()
      return { project, shop: openShop(town, project) }
    }),
  )

  async function keep(): Promise<void> {
    const stands = await opened
    while (run.isStormy()) {
      await sleep(random.next() * BETWEEN_MS)
      const { project, shop } = random.pick(stands)
      const { capability } = project
      await operator.interfere(project)
      if (project.capability !== capability || random.chance(0.2)) shop.restart()
    }
    while (!run.isCalm()) await sleep(BETWEEN_MS)
    for (const { project } of stands) await operator.settle(project)
  }

  return {
    closes: keep(),

    async story(who) {
      const stand = random.pick(await opened)
      return random.chance(0.5)
        ? visitorStory(town, who, stand)
        : clientStory(town, who, stand.project)
    },

    async balance() {
      await verifyReceipts(town)
      balanceReceipts(town)
      return grantedCredits(town)
    },
  }
}

/** As anybody does who was shown a receipt: by the published keys alone. */
async function verifyReceipts({ run, receipts }: Town): Promise<void> {
  const { ledger, service } = run
  const answer = await service.ask({ target: '/.well-known/gate-jwks.json' })
  const keys = readGateKeys(JSON.parse(answer?.text ?? '{}')) ?? []
  for (const [intentId, each] of receipts) {
    for (const receipt of each.values()) {
      const { outcome } = await verifyReceipt(receipt, keys)
      if (outcome !== 'ok') ledger.break('a receipt verifies', `that of ${intentId}: ${outcome}`)
    }
  }
}

/** What was handed out is in the store, and stays the newest until it is given back. */
function balanceReceipts({ run, receipts, quotes }: Town): void {
  const { disk } = run.world
  for (const [intentId, each] of receipts) {
    const [row] = disk.read(
      'select receipt, give_backs from gate_receipt where intent_id = $1',
      intentId,
    )
    const told = Math.max(...each.keys())
    const kept = Number(row?.give_backs ?? -1)
    if (kept < told || (kept === told && row?.receipt !== each.get(told))) {
      run.ledger.break('one payment, one receipt', `that of ${intentId} is not in the store`)
    }
  }
  for (const [intentId, { bolt11 }] of quotes) {
    const [row] = disk.read('select bolt11 from gate_intent where intent_id = $1', intentId)
    if (row?.bolt11 !== bolt11)
      run.ledger.break('one request, one invoice', `that of ${intentId} is not in the store`)
  }
}
