/** The real program, told to stop by a signal. What a kill may not break is in test/simulation and test/faults. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type ClientRequest, type IncomingMessage, request } from 'node:http'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { type CatchCapability, createMayfly } from '../../src/client/index.ts'
import { temporaryFolder } from '../support/folder.ts'
import { startProgram } from '../support/program.ts'
import { until } from '../support/until.ts'

suite('a service told to stop', { timeout: 600_000 }, () => {
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    test(`a service told to stop by ${signal} finishes the request under way and exits with 0`, async (t) => {
      const file = join(await temporaryFolder(t), 'mayfly.db')
      const program = await startProgram(t, file)
      const inbox = await createMayfly({ baseUrl: program.url }).buyCatch({
        planId: 'spark',
        onInvoice: ({ bolt11 }) => program.pay(bolt11),
      })
      const underWay = await beginRequest(program, inbox)
      program.signal(signal)
      await until('it says so', () => program.told().includes('Stopping'))
      await until('it takes no new request', () =>
        fetch(`${program.url}/health`).then(
          () => false,
          () => true,
        ),
      )
      const [response] = await Promise.all([once(underWay, 'response'), underWay.end(' end')])
      assert.equal((response[0] as IncomingMessage).statusCode, 204)
      assert.deepEqual(await program.ended, { code: 0, signal: null })
      assert.equal(program.logged.at(-1)?.event, 'stopped')

      const again = await startProgram(t, file)
      const { events } = await createMayfly({ baseUrl: again.url }).catch(inbox).page()
      assert.deepEqual(
        events.map(({ body }) => body),
        ['begin end'],
      )
    })
  }

  /** A request to the inbox of which the program has the headers, and half the body. */
  async function beginRequest(
    { url }: { url: string },
    { publicId }: CatchCapability,
  ): Promise<ClientRequest> {
    const underWay = request(`${url}/c/${publicId}`, {
      method: 'POST',
      headers: { expect: '100-continue', 'content-length': 'begin end'.length },
    })
    underWay.flushHeaders()
    await once(underWay, 'continue')
    underWay.write('begin')
    return underWay
  }
})
