/** A server that the tests of a suite share, if each looks only at what it made itself. */
import { after } from 'node:test'
import { startServer, type TestServer } from './server.ts'

/**
 * Call this once in a suite. The first test that needs the server starts it, and the end of the suite stops
 * it. A test that moves its clock, restarts it, reads its log or counts rows in its store needs its own
 * server. So does one that mocks timers: what the server clears meanwhile is cleared at the mock, and the real
 * timers keep the process alive.
 */
export function shareServer(environment: Record<string, string> = {}): () => Promise<TestServer> {
  const endings: (() => unknown)[] = []
  after(async () => {
    for (const end of endings) await end()
  })
  let server: Promise<TestServer> | undefined
  return () => {
    server ??= startServer({ after: (work) => endings.push(work) }, environment)
    return server
  }
}
