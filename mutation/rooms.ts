/** What is mutated, and which tests are asked: those that speak of it, not all that pass through it. */
export type Room = { mutate: string[]; tests: string[] }

/** What answers over HTTP. The tests of the rest need no server, and take a tenth of the time. */
const SERVED_BY_GATE = [
  ...['access', 'challenge', 'intent-routes', 'proof-routes', 'render', 'schema'],
  ...['open', 'product'],
].map((name) => `src/gate/${name}.ts`)

/** What all nodes have in common and what needs no node to be tested, which takes a hundredth of the time. */
const RULES_OF_NODES = [
  'src/lightning/urls.ts',
  'src/lightning/node/{access,check-invoice,error,json-fields}.ts',
]

export const ROOMS: Record<string, Room> = {
  protocol: {
    mutate: ['src/protocol/**/*.ts'],
    tests: ['test/protocol/**/*.test.ts'],
  },
  payment: {
    mutate: ['src/payment/**/*.ts', '!src/payment/flows/**'],
    // What a purchase is told is asked of a server.
    tests: [
      'test/payment/**/*.test.ts',
      'test/api/{clock-jumps,contested,limits,lost-orders,new-orders}.test.ts',
      'test/api/{order-of-checks,purchase,recover}.test.ts',
    ],
  },
  'payment-flows': {
    mutate: ['src/payment/flows/**/*.ts'],
    // What challenges say, and what becomes of their credentials, is asked of a server.
    tests: [
      'test/payment/flows.test.ts',
      'test/api/{payment-auth,l402,one-url,delivery,contested,genuine-proofs}.test.ts',
    ],
  },
  'gate-api': {
    mutate: SERVED_BY_GATE,
    // Not those of test/api, which start the whole service each.
    tests: ['test/gate/{challenge,intent-routes,open,proof-routes}.test.ts'],
  },
  'gate-middleware': {
    mutate: ['src/gate-middleware/**/*.ts'],
    tests: ['test/gate-middleware/*.test.ts'],
  },
  gate: {
    mutate: ['src/gate/**/*.ts', ...SERVED_BY_GATE.map((file) => `!${file}`)],
    tests: [
      'test/gate/{check-invoice,give-back,intents,log,open,patterns,proofs,provider}.test.ts',
      'test/gate/{projects,scopes,intent-store,receipt-store}.test.ts',
    ],
  },
  'node-rules': {
    mutate: RULES_OF_NODES,
    tests: ['test/lightning/node/{check-invoice,error,json-fields,urls}.test.ts'],
  },
  lightning: {
    mutate: [
      'src/lightning/{cln,phoenixd,nwc,lnd,node}/**/*.ts',
      ...RULES_OF_NODES.map((file) => `!${file}`),
    ],
    tests: [
      // Without those that start LND nodes.
      'test/lightning/{cln,phoenixd,nwc,node}/**/*.test.ts',
      'test/lightning/lnd/{access,answers,watch}.test.ts',
      'test/contract/{cln,phoenixd,nwc}.test.ts',
    ],
  },
  // Of the stores, tests with a server or with PostgreSQL are not asked: they take seconds each.
  'catch-stores': {
    // Not the JSON of an event: a thread of the store makes it, where no mutant is on.
    mutate: ['src/catch/{store,event-store,event-tables,found,refusals}.ts'],
    tests: [
      'test/catch/{store,event,event-places,event-reads,event-store,ingest,refusals,service}.test.ts',
      'test/service/takedowns.test.ts',
    ],
  },
  'whisper-stores': {
    mutate: ['src/whisper/{store,receipt-store,unpaid}.ts'],
    tests: ['test/whisper/{store,unpaid}.test.ts'],
  },
  'pulse-stores': {
    mutate: ['src/pulse/store.ts'],
    tests: ['test/pulse/{store,changes,history,rotation,service,state,uptime}.test.ts'],
  },
  'switch-stores': {
    mutate: ['src/switches/store.ts'],
    tests: ['test/switches/{store,bindings}.test.ts'],
  },
  'alert-stores': {
    mutate: ['src/alerts/store.ts'],
    tests: ['test/alerts/{store,store-destinations,delivery,outbox}.test.ts'],
  },
  takedowns: {
    mutate: ['src/service/takedowns.ts', 'src/{catch,whisper,pulse}/takedown.ts'],
    tests: ['test/service/takedowns.test.ts', 'test/pulse/state.test.ts'],
  },
}
