/** Random numbers from a seed: the same seed gives the same numbers on every machine. */

export type Random = ReturnType<typeof createRandom>

/** sfc32 by Chris Doty-Humphrey (PractRand), seeded through splitmix32. */
export function createRandom(seed: number) {
  let mixed = seed | 0
  const mix = (): number => {
    mixed = (mixed + 0x9e3779b9) | 0
    let x = mixed ^ (mixed >>> 16)
    x = Math.imul(x, 0x21f0aaad)
    x ^= x >>> 15
    x = Math.imul(x, 0x735a2d97)
    return (x ^ (x >>> 15)) | 0
  }
  let [a, b, c, counter] = [mix(), mix(), mix(), 1]
  const uint32 = (): number => {
    const t = (((a + b) | 0) + counter) | 0
    counter = (counter + 1) | 0
    a = b ^ (b >>> 9)
    b = (c + (c << 3)) | 0
    c = (c << 21) | (c >>> 11)
    c = (c + t) | 0
    return t >>> 0
  }
  for (let i = 0; i < 12; i++) uint32()

  /** At least 0, below 1. */
  const next = (): number => uint32() / 2 ** 32
  /** An integer, at least `from`, below `below`. */
  const int = (from: number, below: number): number => from + Math.floor(next() * (below - from))
  return {
    next,
    int,
    /** True with this probability. */
    chance: (probability: number): boolean => next() < probability,
    pick<T>(items: readonly T[]): T {
      if (items.length === 0) throw new RangeError('nothing to pick from')
      return items[int(0, items.length)] as T
    },
    bytes(length: number): Uint8Array {
      const bytes = new Uint8Array(length)
      for (let i = 0; i < length; i++) bytes[i] = uint32() & 0xff
      return bytes
    },
  }
}
