/**
 * What a run is like, which its seed decides first. Most runs have only some kinds of trouble and of clients, and more
 * of these: what breaks a promise is mostly a meeting of two or three, which all the others would keep apart.
 */
import type { Random } from '../support/random.ts'

/** How often each comes, beside the others of a run. */
const DISASTERS = {
  'the node restarts': 8,
  kill: 34,
  restart: 13,
  'a new secret': 5,
  'another address': 6,
  'other plans': 10,
  refusal: 5,
  'loss of power': 10,
  outage: 6,
  jump: 8,
} as const

export type Disaster = keyof typeof DISASTERS

const STORIES = { inbox: 35, secret: 25, alerts: 15, monitor: 13, switch: 12 } as const

type Story = keyof typeof STORIES

export type Weather = ReturnType<typeof weatherOf>

/** GATE costs a run more than another product: it has two more servers. */
const GATE_EVERY = 3

export function weatherOf(random: Random, seed: number) {
  const hasGate = seed % GATE_EVERY === 0
  return {
    processes: random.pick([1, 1, 2, 3]),
    losing: random.pick([0, 0.02, 0.1, 0.25]),
    diskFailing: random.pick([0, 0, 0.01, 0.05]),
    nodeFailing: random.pick([0, 0.05, 0.3]),
    nodeStalling: random.pick([0, 0.02, 0.3]),
    telling: random.pick([0, 0.5, 1]),
    nodeForgetting: random.pick([0, 0.05, 0.2]),
    nodeLagging: random.pick([0, 0.3, 1]),
    /** How often only a part of a payment arrives. */
    partial: random.pick([0, 0.1]),
    /** All payments settle at the next multiple of so many milliseconds. 0 if each has its own time. */
    togetherMs: random.pick([0, 1_000, 10_000, 10_000]),
    disasters: someOf(random, Object.keys(DISASTERS) as Disaster[]),
    /** Milliseconds between two disasters, on average. */
    disasterEveryMs: random.pick([8_000, 15_000, 40_000]),
    /** How often a disaster waits until something is under way. */
    aiming: random.pick([0, 0.8, 1]),
    /** Of the processes. Two that are off in two ways are a second apart, which docs/run/postgresql.md allows. */
    clocksWithinMs: random.pick([0, 50, 500]),
    /** Of the node and of wallets. The service accepts two minutes. */
    nodeClocksWithinMs: random.pick([0, 500, 60_000]),
    hasGate,
    stories: someOf(random, Object.keys(STORIES) as Story[]),
    /** How often a key can be guessed. */
    guessable: random.pick([0, 0.15, 0.8]),
    /** How many extensions an owner may buy. */
    extensions: random.pick([[0], [0, 0, 1, 2, 3], [2, 3], [2, 3]]),
    restore: random.chance(0.2) && !hasGate ? restoreOf(random) : null,
    /** Whether one process is enough once the faults are over. */
    isAlone: random.chance(0.8),
    /** Whether the run waits in the end for longer than anything may take. */
    isLong: random.chance(0.1),
  }
}

/** All of them in some runs, and a part in the others, which may be none. */
function someOf<T>(random: Random, all: readonly T[]): readonly T[] {
  if (random.chance(0.25)) return all
  return all.filter(() => random.chance(0.3))
}

/** When a backup is taken, and when it is restored, in milliseconds. */
function restoreOf(random: Random): { takenAt: number; restoredAt: number } {
  const takenAt = random.next() * random.pick([15_000, 40_000])
  return { takenAt, restoredAt: takenAt + random.next() * 20_000 }
}

/** Null in a run without any. */
export const anyDisaster = (random: Random, { disasters }: Weather): Disaster | null =>
  weighed(random, DISASTERS, disasters)

/** Any in a run that has chosen none. */
export const anyStory = (random: Random, { stories }: Weather): Story =>
  weighed(random, STORIES, stories) ??
  (weighed(random, STORIES, Object.keys(STORIES) as Story[]) as Story)

function weighed<T extends string>(
  random: Random,
  weights: Record<T, number>,
  among: readonly T[],
): T | null {
  let at = random.next() * among.reduce((sum, each) => sum + weights[each], 0)
  for (const each of among) {
    at -= weights[each]
    if (at < 0) return each
  }
  return null
}
