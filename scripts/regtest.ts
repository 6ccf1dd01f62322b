/**
 * `npm run regtest`: two real LND nodes on a chain of their own, to rehearse selling without real money. It prints
 * the settings of a seller and of a buyer, and runs until Ctrl-C. LND and btcd are built once with Go (five to eight
 * minutes), or taken from the folder that TESTNODES_BIN names.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { LndNode } from '../test/support/nodes/lnd-node.ts'
import { startTestbed } from '../test/support/nodes/testbed.ts'
import { PAYING_MACAROON } from '../test/support/wallet-recipes.ts'

const folder = mkdtempSync(join(tmpdir(), 'mayfly-regtest-'))
process.stderr.write('Starting two nodes and a channel between them …\n')
const { alice, bob, chain, close } = await startTestbed(join(folder, 'nodes'))

/** The form of MAYFLY_LIGHTNING_URL and MAYFLY_WALLET_URL, with a macaroon that can do just this. */
async function urlOf(node: LndNode, name: string, permissions: string[]): Promise<string> {
  const macaroon = join(folder, `${name}.macaroon`)
  writeFileSync(macaroon, await node.bake(...permissions), { mode: 0o600 })
  return `lnd+${node.baseUrl}?${new URLSearchParams({ macaroon, cert: node.certificateFile })}`
}

const seller = await urlOf(alice, 'seller', ['invoices:read', 'invoices:write', 'info:read'])
const buyer = await urlOf(bob, 'buyer', PAYING_MACAROON)
process.stdout.write(
  `# the seller, before npm start\nexport MAYFLY_LIGHTNING_URL='${seller}'\n` +
    `export MAYFLY_DATABASE_URL='sqlite:${join(folder, 'mayfly.db')}'\n\n` +
    `# the buyer, in another terminal\nexport MAYFLY_WALLET_URL='${buyer}'\n`,
)
process.stderr.write('\nThe nodes run until Ctrl-C.\n')
// As on a real chain. After two hours without a block LND is no longer in sync, and nothing can be bought.
const blocks = setInterval(() => void chain.mine(1), 10 * 60_000)
await new Promise<void>((resolve) => {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => resolve())
})
clearInterval(blocks)
await close()
rmSync(folder, { recursive: true, force: true })
