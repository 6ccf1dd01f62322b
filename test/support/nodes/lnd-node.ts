/** An LND: its process, and its REST port with the administrator's macaroon. */
import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Pool } from 'undici'
import { freePort } from '../ports.ts'
import { until } from '../until.ts'
import type { Chain } from './chain.ts'
import { readCertificate } from './chain.ts'
import { type JsonObject, list, object, string } from './json.ts'
import type { Processes, Running } from './processes.ts'

export type LndNode = Awaited<ReturnType<typeof createLndNode>>
type MacaroonName = 'admin' | 'invoice' | 'readonly'

const PAY_WITHIN_SECONDS = 120

export async function createLndNode(options: {
  name: string
  folder: string
  binary: string
  processes: Processes
  chain: Chain
}) {
  const { name, folder, binary, processes, chain } = options
  const [rest, grpc, p2p] = [await freePort(), await freePort(), await freePort()]
  const baseUrl = `https://127.0.0.1:${rest}`
  /** For other nodes. */
  const address = `127.0.0.1:${p2p}`
  const certificateFile = join(folder, 'tls.cert')
  const macaroonFile = (of: MacaroonName) =>
    join(folder, 'data/chain/bitcoin/regtest', `${of}.macaroon`)
  const certificate = () => readCertificate(certificateFile)
  /** One of the macaroons that LND makes, in hex. */
  const macaroon = (of: MacaroonName) => readFileSync(macaroonFile(of)).toString('hex')
  mkdirSync(folder, { recursive: true })
  let running: Running | undefined
  let pool: Pool | undefined

  async function call(method: 'GET' | 'POST', path: string, body?: JsonObject): Promise<string> {
    pool ??= new Pool(baseUrl, { connect: { ca: certificate() } })
    const response = await pool.request({
      method,
      path,
      headers: { 'grpc-metadata-macaroon': macaroon('admin') },
      body: body ? JSON.stringify(body) : null,
      // LND's own timeout does not end a payment whose HTLC hangs.
      signal: AbortSignal.timeout(2 * PAY_WITHIN_SECONDS * 1000),
    })
    const text = await response.body.text()
    if (response.statusCode === 200) return text
    throw new Error(`${name}: ${method} ${path}: ${response.statusCode} ${text}`)
  }

  const get = async (path: string) => object(JSON.parse(await call('GET', path)))
  const post = async (path: string, body: JsonObject = {}) =>
    object(JSON.parse(await call('POST', path, body)))

  /** Pays an invoice. Resolves to the preimage after the payment. */
  async function pay(bolt11: string): Promise<string> {
    // A stream with a JSON object per line. Only the last one is requested.
    const lines = await call('POST', '/v2/router/send', {
      payment_request: bolt11,
      timeout_seconds: PAY_WITHIN_SECONDS,
      fee_limit_sat: '100',
      no_inflight_updates: true,
    })
    const last = object(JSON.parse(lines.trim().split('\n').at(-1) ?? ''))
    const payment = object(last.result ?? last.error)
    if (payment.status === 'SUCCEEDED') return string(payment.payment_preimage)
    throw new Error(`${name}: payment failed: ${payment.failure_reason ?? payment.message}`)
  }

  /** Bakes a macaroon with only these permissions, such as `invoices:read`. Returns it in hex. */
  async function bake(...permissions: string[]): Promise<string> {
    const pairs = permissions.map((each) => each.split(':'))
    const answer = await post('/v1/macaroon', {
      permissions: pairs.map(([entity, action]) => ({ entity, action })),
    })
    return string(answer.macaroon)
  }

  /** Starts the process and waits for its RPC. */
  async function start(): Promise<void> {
    const { rpc } = chain
    const process = processes.launch(
      binary,
      [
        ...[`--lnddir=${folder}`, `--alias=${name}`, '--noseedbackup', '--debuglevel=info'],
        ...['--bitcoin.regtest', '--bitcoin.node=btcd', `--btcd.rpchost=${rpc.host}`],
        ...[`--btcd.rpcuser=${rpc.user}`, `--btcd.rpcpass=${rpc.password}`],
        `--btcd.rpccert=${rpc.certificate}`,
        ...[`--restlisten=127.0.0.1:${rest}`, `--rpclisten=127.0.0.1:${grpc}`],
        ...[`--listen=${address}`, `--externalip=${address}`, '--nobootstrap'],
        ...['--bitcoin.defaultchanconfs=1', '--bitcoin.basefee=0', '--bitcoin.feerate=1'],
        // Gossip and reconnections that are fast enough for tests.
        ...['--trickledelay=50', '--gossip.channel-update-interval=100ms'],
        ...['--minbackoff=1s', '--maxbackoff=2s'],
        '--tlsdisableautofill',
        // By default, LND stops when the chain is unreachable for some minutes.
        '--healthcheck.chainbackend.attempts=0',
      ],
      join(folder, 'out.log'),
    )
    running = process
    await until(`${name} to answer`, async () => {
      process.mustRun()
      return get('/v1/getinfo')
    })
  }

  async function ended(by: 'stop' | 'kill'): Promise<void> {
    await running?.[by]()
    await pool?.destroy()
    pool = undefined
  }

  return {
    baseUrl,
    address,
    /** For clients of other people. */
    grpcAddress: `127.0.0.1:${grpc}`,
    certificate,
    certificateFile,
    macaroon,
    macaroonFile,
    bake,
    get,
    post,
    pay,
    start,
    stop: () => ended('stop'),
    /** Sends SIGKILL: the node cannot save anything. */
    kill: () => ended('kill'),
    /** Sends SIGSTOP: connections stay open, and nothing answers. */
    freeze: () => running?.signal('SIGSTOP'),
    thaw: () => running?.signal('SIGCONT'),
  }
}

/** Whether `from` finds a route to the node with this public key. */
export async function hasRoute(from: LndNode, publicKey: string): Promise<boolean> {
  const { routes } = await from.get(`/v1/graph/routes/${publicKey}/1000`)
  return list(routes).length > 0
}
