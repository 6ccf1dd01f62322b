/** The metrics of a running server. */
import assert from 'node:assert/strict'
import type { TestServer } from './server.ts'

/** The value of each series, by its name and labels. */
export type Series = Map<string, number>

/** The address of the metrics of a server with MAYFLY_METRICS_PORT. */
export function listener({ logged }: TestServer): string {
  const lines = logged.map((line) => JSON.parse(line) as { event: string; url: string })
  const found = lines.findLast(({ event }) => event === 'metrics.listening')
  if (!found) throw new Error('no metrics are served')
  return found.url
}

/** All metrics of a server with MAYFLY_METRICS_PORT, as text and by series. */
export async function scrape(server: TestServer): Promise<{ text: string; series: Series }> {
  const answer = await fetch(listener(server))
  assert.equal(answer.status, 200)
  const text = await answer.text()
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  const series = lines.map((line): [string, number] => {
    const at = line.lastIndexOf(' ')
    return [line.slice(0, at), Number(line.slice(at + 1))]
  })
  return { text, series: new Map(series) }
}
