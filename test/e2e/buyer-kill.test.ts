/** A buyer's process that is killed at any of its writes has paid once at most, and the key of what it bought is there. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { openPurchases } from '../../src/cli/vault/purchases.ts'
import { allKept } from '../../src/cli/vault/saved.ts'
import { type CommandEnded, commandLine, WITH_WALLET } from '../support/command-line.ts'
import { paidInvoices } from '../support/mcp-money.ts'
import { startServer } from '../support/server.ts'

const KILLER = fileURLToPath(new URL('./kill-at-write.mjs', import.meta.url))
/** The invoice, the claim, the proof, the capability, and the name that is left. */
const WRITES = 5
const SEND = ['whisper', 'send', '--name', 'note']

test('a command that is killed at any write pays once, and what it bought opens', async (t) => {
  for (const when of ['before', 'after']) {
    for (let at = 1; at <= WRITES; at++) {
      const what = `${when} write ${at}`
      const server = await startServer(t)
      const cli = await commandLine(t, server.url)
      const environment = {
        ...WITH_WALLET.environment,
        NODE_OPTIONS: `--import=${KILLER}`,
        MAYFLY_TEST_KILL: `${when} ${at}`,
      }
      const killed = await cli.start(SEND, { environment, input: 'secret' }).ended
      assert.equal(killed.signal, 'SIGKILL', `${what}: ${killed.err}`)
      const isSaved = allKept(cli).length === 1
      const isBegun = openPurchases(cli).length === 1
      let sent: CommandEnded | null = null
      if (isBegun) sent = await cli.run(['whisper', 'send', '--resume', 'note'], WITH_WALLET)
      else if (!isSaved) {
        assert.equal(await paidInvoices(server), 0, what)
        sent = await cli.run(SEND, { ...WITH_WALLET, input: 'secret' })
      }
      assert.equal(sent?.code ?? 0, 0, `${what}: ${sent?.err}`)
      const { out } = await cli.run(['whisper', 'read', 'note', '--yes'])
      assert.equal(out, 'secret', what)
      assert.equal(await paidInvoices(server), 1, what)
      await server.stop()
    }
  }
})
