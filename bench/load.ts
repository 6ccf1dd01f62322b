/** A load on one address. autocannon runs in this process, and the server in another. */
import autocannon from 'autocannon'

export type Load = {
  url: string
  connections: number
  /** The length of the load, unless it has a number of requests. */
  seconds?: number
  requests?: number
  /** The most requests per second. Default: a new request after each answer. */
  ratePerSecond?: number
  method?: 'GET' | 'POST'
  headers?: Record<string, string>
  body?: string
  /** Changes each request just before it is sent. */
  eachRequest?: (request: { path?: string; headers?: Record<string, string> }) => object
}

/** Latencies are in milliseconds. `count` counts the expected answers, and `errors` all others. */
export type Measured = {
  perSecond: number
  count: number
  p50: number
  p99: number
  errors: number
}

export async function load(ask: Load, status: number): Promise<Measured> {
  const result = await autocannon({
    url: ask.url,
    connections: ask.connections,
    ...(ask.requests === undefined ? { duration: ask.seconds ?? 5 } : { amount: ask.requests }),
    ...(ask.ratePerSecond === undefined ? {} : { overallRate: ask.ratePerSecond }),
    method: ask.method ?? 'GET',
    headers: ask.headers ?? {},
    ...(ask.body === undefined ? {} : { body: ask.body }),
    ...(ask.eachRequest
      ? { requests: [{ setupRequest: ask.eachRequest as autocannon.Request['setupRequest'] & {} }] }
      : {}),
  })
  const expected = Number(
    (result as unknown as { statusCodeStats?: Record<string, { count: number }> })
      .statusCodeStats?.[String(status)]?.count ?? 0,
  )
  return {
    perSecond: Math.round(expected / result.duration),
    count: expected,
    p50: result.latency.p50,
    p99: result.latency.p99,
    errors: result.errors + result.timeouts + (result.requests.total - expected),
  }
}

/** The run with the median rate. */
export function median(runs: Measured[]): Measured {
  const sorted = runs.toSorted((a, b) => a.perSecond - b.perSecond)
  const middle = sorted[Math.floor(sorted.length / 2)]
  if (!middle) throw new Error('nothing was measured')
  return middle
}
