/** GATE's entry. The service does not sell it: payers pay the project. `open.ts` puts its parts together. */
import type { ProductFacts } from '../http/product.ts'
import { NEW_INTENTS, NEW_INTENTS_OF_VISITOR } from './limits.ts'

export const GATE: ProductFacts = {
  name: 'gate',
  about:
    "Payments for one request to another project, straight to the project's own Lightning Address, and signed receipts for them.",
  surface: {
    roots: [{ path: '/.well-known/' }],
    requestHeaders: ['X-Gate-Project', 'X-Gate-Route', 'X-Gate-Method', 'X-Gate-Path'],
    responseHeaders: ['Gate-Receipt'],
  },
  limits: [NEW_INTENTS, NEW_INTENTS_OF_VISITOR],
  guide: '',
}
