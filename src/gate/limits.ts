/** The rate limits of GATE. */
import type { Limit } from '../http/limits.ts'

/** New intents, by project, where it does not say for which visitor. */
export const NEW_INTENTS: Limit = { name: 'gate', perMinute: 120, burst: 120 }
/** New intents, by project and network of the visitor. */
export const NEW_INTENTS_OF_VISITOR: Limit = { name: 'gateVisitor', perMinute: 60, burst: 60 }
