/** Makes Prometheus instruments on one registry, all under the prefix `mayfly_`. */
import { Counter, Gauge, Histogram, type Registry } from 'prom-client'

/** Bucket bounds: from one write of the store to the longest request that a person waits for. */
const DURATION_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

export type Instruments = ReturnType<typeof createInstruments>

/** The source of a metric's values by label. Null leaves the metric out of the scrape. */
export type LabelledSource = {
  label: string
  read: () => LabelledValues | Promise<LabelledValues | null>
}

export type LabelledValues = Iterable<readonly [label: string, value: number]>

export function createInstruments(registry: Registry) {
  const options = (name: string, help: string, labelNames: string[] = []) => ({
    name: `mayfly_${name}`,
    help,
    labelNames,
    registers: [registry],
  })
  const counter = (name: string, help: string, labelNames?: string[]) =>
    new Counter(options(name, help, labelNames))
  return {
    counter,
    /** What counts by one label. Those that are known from the start begin with 0. */
    count(name: string, help: string, { label, known = [] }: { label: string; known?: string[] }) {
      const counted = counter(name, help, [label])
      for (const one of known) counted.inc({ [label]: one }, 0)
      return (one: string, times = 1): void => counted.inc({ [label]: one }, times)
    },
    gauge: (name: string, help: string, labelNames?: string[]) =>
      new Gauge(options(name, help, labelNames)),
    /** A histogram of seconds. */
    histogram: (name: string, help: string, labelNames: string[]) =>
      new Histogram({ ...options(name, help, labelNames), buckets: DURATION_BUCKETS }),
    /** A gauge that is read when it is scraped. */
    gaugeOf(name: string, help: string, read: () => number): void {
      new Gauge({
        ...options(name, help),
        collect() {
          this.set(read())
        },
      })
    },
    /** A gauge with one label that is read when it is scraped. */
    gaugeBy: (name: string, help: string, source: LabelledSource) =>
      new Gauge({ ...options(name, help, [source.label]), collect: readFrom(source) }),
    /** A counter with one label that is read when it is scraped. */
    counterBy: (name: string, help: string, source: LabelledSource) =>
      new Counter({ ...options(name, help, [source.label]), collect: readFrom(source) }),
  }
}

const readFrom = ({ label, read }: LabelledSource) =>
  async function collect(this: Gauge | Counter): Promise<void> {
    const values = await read()
    this.reset()
    for (const [name, value] of values ?? []) this.inc({ [label]: name }, value)
  }
