/** What is mutated, and which tests are asked: those that speak of it, not all that pass through it. */
export type Room = { mutate: string[]; tests: string[] }

export const ROOMS: Record<string, Room> = {
  protocol: {
    mutate: ['src/protocol/**/*.ts'],
    tests: ['test/protocol/**/*.test.ts'],
  },
  payment: {
    mutate: ['src/payment/**/*.ts'],
    tests: ['test/payment/**/*.test.ts'],
  },
  gate: {
    mutate: ['src/gate/**/*.ts'],
    tests: ['test/gate/**/*.test.ts', 'test/api/gate-*.test.ts'],
  },
  lightning: {
    mutate: ['src/lightning/{cln,phoenixd,nwc,lnd,node}/**/*.ts'],
    tests: ['test/lightning/{lnd,node}/**/*.test.ts', 'test/contract/{cln,phoenixd,nwc}.test.ts'],
  },
  stores: {
    mutate: [
      'src/catch/{store,event-store,event-insert,event-places,event-rows,event-writes,event-maps}.ts',
      'src/whisper/{store,receipt-store}.ts',
      'src/pulse/{store,history-store,history-rows}.ts',
    ],
    tests: [
      'test/catch/event-*.test.ts',
      'test/whisper/**/*.test.ts',
      'test/pulse/**/*.test.ts',
      'test/api/{catch,whisper}-*.test.ts',
    ],
  },
}
