/** The metrics and their listener, if the operator has switched them on. */

import type { Metrics } from '../metrics/metrics.ts'
import { type Config, ConfigError, hostInUrl } from './config.ts'

/** With the metrics off, their library is not loaded. */
export async function openMetrics(): Promise<Metrics> {
  const { createMetrics } = await import('../metrics/metrics.ts')
  return createMetrics()
}

/** Opens the metrics listener, and returns its address with the actual port. */
export async function openScrapes(metrics: Metrics, { metricsHost: host, metricsPort }: Config) {
  const { listenForScrapes } = await import('../metrics/listener.ts')
  try {
    const listener = await listenForScrapes(metrics, { host, port: metricsPort ?? 0 })
    return { ...listener, url: `http://${hostInUrl(host)}:${listener.port}/metrics` }
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown'
    throw new ConfigError(
      `MAYFLY_METRICS_HOST and MAYFLY_METRICS_PORT must name a free address of this machine (${code}).`,
    )
  }
}
