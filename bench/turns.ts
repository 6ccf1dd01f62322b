/** Lets the service and the program that it is compared with take turns, and reports both in one line. */
import { createCost } from './cost.ts'
import type { Engine } from './engine.ts'
import { type Measured, median } from './load.ts'
import type { Program } from './program.ts'

const ROUNDS = 3
const SECONDS = 5
const WARM_UP_SECONDS = 2

/** Each function runs its load for that many seconds. Its preparation is not measured. */
export async function takeTurns(
  { engine, mayfly, bare }: { engine: Engine; mayfly: Program; bare: Program },
  loads: { ours(seconds: number): Promise<Measured>; theirs(seconds: number): Promise<Measured> },
): Promise<string> {
  const ours: Measured[] = []
  const theirs: Measured[] = []
  await loads.ours(WARM_UP_SECONDS)
  await loads.theirs(WARM_UP_SECONDS)
  const cost = {
    ours: createCost([mayfly.cpuMs, engine.cpuMs]),
    theirs: createCost([bare.cpuMs]),
  }
  for (let round = 0; round < ROUNDS; round++) {
    theirs.push(await cost.theirs.during(() => loads.theirs(SECONDS)))
    ours.push(await cost.ours.during(() => loads.ours(SECONDS)))
  }
  const [our, their] = [median(ours), median(theirs)]
  return (
    `${our.perSecond}/s, p50 ${our.p50} ms, p99 ${our.p99} ms, ${our.errors} errors; bare ${their.perSecond}/s; ` +
    `ratio ${(our.perSecond / their.perSecond).toFixed(2)}; ` +
    `CPU a request ${cost.ours.line()} (service + store), bare ${cost.theirs.line()}; ${mayfly.memoryMib()} MiB`
  )
}
