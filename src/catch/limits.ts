/** The rate limits of CATCH. */
import type { Limit } from '../http/limits.ts'
import type { PlanId } from '../lib/product-names.ts'

/** Requests to an inbox, by its plan. */
export const INGEST: Record<PlanId, Limit> = {
  spark: { name: 'ingest.spark', perMinute: 600, burst: 50 },
  standard: { name: 'ingest.standard', perMinute: 1_200, burst: 100 },
  long: { name: 'ingest.long', perMinute: 3_000, burst: 250 },
}
