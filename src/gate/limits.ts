/** The rate limits of GATE. */
import type { Limit } from '../http/limits.ts'

/** New intents per project, if the request does not name the visitor's network. */
export const NEW_INTENTS: Limit = { name: 'gate', perMinute: 120, burst: 120 }
/** New intents per project and visitor's network. */
export const NEW_INTENTS_OF_VISITOR: Limit = { name: 'gateVisitor', perMinute: 60, burst: 60 }
