/** btcd on regtest, and the blocks on it. */
import { randomBytes } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Pool } from 'undici'
import { freePort } from '../ports.ts'
import { until } from '../until.ts'
import { mineBlock, NOBODY } from './block.ts'
import { createDoor } from './door.ts'
import { list, number, object, string } from './json.ts'
import type { Processes, Running } from './processes.ts'

export type Chain = Awaited<ReturnType<typeof createChain>>

const USER = 'test'
// Votes for CSV, SegWit and taproot, which btcd's regtest activates at block 432.
const VERSION = 0x20000007
const HALVING = 150

export async function createChain(options: {
  folder: string
  binary: string
  processes: Processes
}) {
  const { folder, binary, processes } = options
  const password = randomBytes(8).toString('hex')
  const rpcPort = await freePort()
  const p2pPort = await freePort()
  const door = await createDoor(rpcPort)
  const certificate = join(folder, 'rpc.cert')
  const config = join(folder, 'btcd.conf')
  mkdirSync(folder, { recursive: true })
  writeFileSync(config, '')

  // btcd deletes its regtest database at every start, so these blocks are the only copy of the chain. The
  // door stays closed until btcd has all blocks again: an LND that saw a shorter chain would keep its
  // height, and send HTLCs that expire too soon.
  const blocks: string[] = []
  const times: number[] = []
  let tip = ''
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

  async function start(): Promise<void> {
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
    if (blocks.length === 0) tip = string(await call('getbestblockhash'))
    for (const block of blocks) await call('submitblock', block)
    door.open()
  }

  async function stop(): Promise<void> {
    door.close()
    await running?.stop()
    await pool?.destroy()
    pool = undefined
  }

  /** Mines empty blocks, which is quick. `script` gets the reward. */
  async function mineEmpty(count: number, script: Buffer = NOBODY): Promise<void> {
    for (let i = 0; i < count; i++) {
      const height = blocks.length + 1
      const time = Math.max(Math.floor(Date.now() / 1000), medianTime(times) + 1)
      await submit(time, {
        version: VERSION,
        previousHash: tip,
        height,
        time,
        coinbaseValue: 5_000_000_000n >> BigInt(Math.floor(height / HALVING)),
        transactions: [],
        script,
      })
    }
  }

  /** Waits for a transaction in the mempool, and mines a block with all that are there. */
  async function mineWaiting(): Promise<void> {
    await until('a transaction in the mempool', async () => {
      return list(await call('getrawmempool')).length > 0
    })
    const template = object(
      await call('getblocktemplate', {
        mode: 'template',
        capabilities: ['coinbasevalue'],
        rules: ['segwit'],
      }),
    )
    const time = number(template.curtime)
    await submit(time, {
      version: number(template.version),
      previousHash: string(template.previousblockhash),
      height: number(template.height),
      time,
      coinbaseValue: BigInt(number(template.coinbasevalue)),
      transactions: list(template.transactions).map((each) => {
        const { txid, hash, data } = object(each)
        return { txid: string(txid), hash: string(hash), data: string(data) }
      }),
      script: NOBODY,
    })
  }

  async function submit(time: number, plan: Parameters<typeof mineBlock>[0]): Promise<void> {
    const { hash, block } = mineBlock(plan)
    const refusal = await call('submitblock', block)
    if (refusal) throw new Error(`submitblock: ${string(refusal)}`)
    blocks.push(block)
    times.push(time)
    tip = hash
  }

  return {
    /** What an LND needs to reach btcd. */
    rpc: { host: `127.0.0.1:${door.port}`, user: USER, password, certificate },
    start,
    stop,
    mineEmpty,
    mineWaiting,
  }
}

/** BIP 113: the time of a block must be after the median of the last eleven. */
function medianTime(times: number[]): number {
  const last = times.slice(-11).sort((a, b) => a - b)
  return last[Math.floor(last.length / 2)] ?? 0
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
