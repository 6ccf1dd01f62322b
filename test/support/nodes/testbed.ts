/**
 * Two real Lightning nodes on a real regtest chain: alice is Mayfly's node, and bob pays. Each has half of
 * the money in the channel between them. The start takes about 5 seconds.
 */
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { until } from '../until.ts'
import { nodeBinaries } from './build.ts'
import { type Chain, createChain } from './chain.ts'
import { string } from './json.ts'
import { createLndNode, hasRoute, type LndNode } from './lnd-node.ts'
import { createProcesses } from './processes.ts'

export type Testbed = Awaited<ReturnType<typeof startTestbed>>

const CAPACITY_SATS = 16_000_000
// The first blocks. With the later ones, the chain is longer than 432 blocks (see chain.ts).
const FIRST_BLOCKS = 332

/** @throws without binaries and without Go to build them. Call `missingNodes` first. */
export async function startTestbed(folder = newFolder()) {
  const binaries = await nodeBinaries()
  if ('missing' in binaries) throw new Error(binaries.missing)
  const processes = createProcesses(folder)
  try {
    const chain = await createChain({
      folder: join(folder, 'btcd'),
      binary: join(binaries.folder, 'btcd'),
      processes,
    })
    const lnd = (name: string) =>
      createLndNode({
        name,
        folder: join(folder, name),
        binary: join(binaries.folder, 'lnd'),
        processes,
        chain,
      })
    const [alice, bob] = [await lnd('alice'), await lnd('bob')]

    await fund(alice, chain)
    await Promise.all([alice.start(), bob.start()])
    await Promise.all([synced(alice), synced(bob)])
    await openChannel(alice, bob, chain)
    /** Waits until payments can go both ways, such as after a restart of a node. */
    const routesReady = () => connected(alice, bob)
    await routesReady()
    // The end of this process closes it too.
    return { alice, bob, chain, pay: bob.pay, routesReady, close: processes.close }
  } catch (error) {
    await processes.close()
    throw error
  }
}

/** Why a testbed is not possible here, for `skip`, or false. On CI it throws instead. */
export async function missingNodes(): Promise<string | false> {
  const binaries = await nodeBinaries()
  if (!('missing' in binaries)) return false
  if (process.env.CI === 'true')
    throw new Error(`no Lightning nodes to test on: ${binaries.missing}`)
  return binaries.missing
}

function newFolder(): string {
  return mkdtempSync(join(tmpdir(), 'mayfly-testbed-'))
}

/** Mines for alice, who has an address only once there are blocks. Neither runs when this ends. */
async function fund(alice: LndNode, chain: Chain): Promise<void> {
  await chain.start()
  await chain.mine(FIRST_BLOCKS)
  await alice.start()
  const witnessPubkeyHash = 1
  const { addr } = await alice.post('/v2/wallet/address/next', { type: witnessPubkeyHash })
  await alice.stop()
  await chain.stop()
  await chain.start(string(addr))
  await chain.mine(105) // a reward can be spent after 100 blocks
}

async function synced(node: LndNode): Promise<void> {
  await until('a node in sync', async () => (await node.get('/v1/getinfo')).synced_to_chain)
}

async function openChannel(alice: LndNode, bob: LndNode, chain: Chain): Promise<void> {
  const bobKey = await publicKey(bob)
  await alice.post('/v1/peers', {
    addr: { pubkey: bobKey, host: bob.address },
    perm: true,
    timeout: '60',
  })
  // The peer accepts channels only after it has finished its start.
  await until('a channel', () =>
    alice.post('/v1/channels', {
      node_pubkey_string: bobKey,
      local_funding_amount: String(CAPACITY_SATS),
      push_sat: String(CAPACITY_SATS / 2),
      sat_per_vbyte: '2',
    }),
  )
  await chain.mineWaiting()
  await chain.mine(9)
}

async function connected(alice: LndNode, bob: LndNode): Promise<void> {
  const [aliceKey, bobKey] = [await publicKey(alice), await publicKey(bob)]
  // A channel is active up to a second before it is in the payer's graph.
  for (const node of [alice, bob]) {
    await until('an active channel', async () => {
      const { num_active_channels, synced_to_chain } = await node.get('/v1/getinfo')
      return num_active_channels === 1 && synced_to_chain
    })
  }
  await until('a route to alice', () => hasRoute(bob, aliceKey))
  await until('a route to bob', () => hasRoute(alice, bobKey))
}

async function publicKey(node: LndNode): Promise<string> {
  return string((await node.get('/v1/getinfo')).identity_pubkey)
}
