/** One server for the tests of a suite that look only at what they made themselves. */
import { after } from 'node:test'
import { startServer, type TestServer } from './server.ts'

/**
 * Called once, in a suite. The first test that asks starts the server, and it stops with the suite. A test that
 * moves its clock, restarts it, reads its log or counts what is in its store needs a server of its own.
 */
export function shareServer(): () => Promise<TestServer> {
  const endings: (() => unknown)[] = []
  after(async () => {
    for (const end of endings) await end()
  })
  let server: Promise<TestServer> | undefined
  return () => {
    server ??= startServer({ after: (work) => endings.push(work) })
    return server
  }
}
