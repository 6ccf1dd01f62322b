/** btcd on regtest, and the blocks on it. */
import { randomBytes } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Pool } from 'undici'
import { fixedAddress, NOWHERE } from '../address.ts'
import { freePort } from '../ports.ts'
import { until } from '../until.ts'
import { list, object, string } from './json.ts'
import type { Processes, Running } from './processes.ts'

export type Chain = Awaited<ReturnType<typeof createChain>>

const USER = 'test'
/** An address whose key nobody has. */
const NOBODY = 'bcrt1qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqdku202'

export async function createChain(options: {
  folder: string
  binary: string
  processes: Processes
}) {
  const { folder, binary, processes } = options
  const password = randomBytes(8).toString('hex')
  const rpcPort = await freePort()
  const p2pPort = await freePort()
  const address = await fixedAddress(processes, NOWHERE)
  const certificate = join(folder, 'rpc.cert')
  const config = join(folder, 'btcd.conf')
  mkdirSync(folder, { recursive: true })
  writeFileSync(config, '')

  // btcd deletes its regtest database at every start, so these blocks are the only copy of the chain. Its
  // address leads nowhere until btcd has all blocks again: an LND that saw a shorter chain would keep its
  // height, and send HTLCs that expire too soon.
  const blocks: string[] = []
  let running: Running | undefined
  let pool: Pool | undefined

  async function call(method: string, ...params: unknown[]): Promise<unknown> {
    if (!pool) throw new Error('btcd is not running')
    const response = await pool.request({
      method: 'POST',
      path: '/',
      headers: {
        authorization: `Basic ${Buffer.from(`${USER}:${password}`).toString('base64')}`,
      },
      body: JSON.stringify({ jsonrpc: '1.0', id: 1, method, params }),
    })
    const answer = object(await response.body.json())
    if (answer.error) throw new Error(`${method}: ${string(object(answer.error).message)}`)
    return answer.result
  }

  /** @param rewarded gets the reward of each block that is mined until the next start. */
  async function start(rewarded = NOBODY): Promise<void> {
    const process = processes.launch(
      binary,
      [
        '--regtest',
        `--configfile=${config}`,
        `--datadir=${folder}/data`,
        `--logdir=${folder}/logs`,
        `--rpcuser=${USER}`,
        `--rpcpass=${password}`,
        `--rpccert=${certificate}`,
        `--rpckey=${folder}/rpc.key`,
        `--rpclisten=127.0.0.1:${rpcPort}`,
        `--listen=127.0.0.1:${p2pPort}`,
        `--miningaddr=${rewarded}`,
        '--txindex',
        '--nodnsseed',
        '--nobanning',
        '--utxocachemaxsize=16',
      ],
      join(folder, 'out.log'),
    )
    running = process
    await until('btcd', async () => {
      process.mustRun()
      pool ??= new Pool(`https://127.0.0.1:${rpcPort}`, {
        connect: { ca: readCertificate(certificate) },
      })
      return string(await call('getbestblockhash'))
    })
    for (const block of blocks) await call('submitblock', block)
    address.moveTo(rpcPort)
  }

  async function stop(): Promise<void> {
    address.moveTo(NOWHERE)
    await running?.stop()
    await pool?.destroy()
    pool = undefined
  }

  async function mine(count: number): Promise<void> {
    for (const hash of list(await call('generate', count))) {
      blocks.push(string(await call('getblock', hash, 0)))
    }
  }

  /** Waits for a transaction in the mempool, and mines a block with all that are there. */
  async function mineWaiting(): Promise<void> {
    await until('a transaction in the mempool', async () => {
      return list(await call('getrawmempool')).length > 0
    })
    await mine(1)
  }

  return {
    /** What an LND needs to reach btcd. */
    rpc: { host: `127.0.0.1:${address.port}`, user: USER, password, certificate },
    start,
    stop,
    mine,
    mineWaiting,
  }
}

/**
 * The certificate that a node makes for itself at its first start, as PEM.
 * @throws until the file is complete. A client that got half of the certificate would trust no server.
 */
export function readCertificate(file: string): string {
  const pem = readFileSync(file, 'utf8')
  if (!pem.trimEnd().endsWith('-----END CERTIFICATE-----')) {
    throw new Error(`${file} is still being written`)
  }
  return pem
}
