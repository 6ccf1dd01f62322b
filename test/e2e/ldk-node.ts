/**
 * LDK Node as `clients/ldk/` builds it, on the chain of a testbed. LDK speaks to Bitcoin Core, so an HTTP server between
 * it and btcd adds what btcd does not tell.
 */
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { json } from 'node:stream/consumers'
import { Pool } from 'undici'
import type { After } from '../support/folder.ts'
import type { Chain } from '../support/nodes/chain.ts'
import { readCertificate } from '../support/nodes/chain.ts'
import { type JsonObject, object, string } from '../support/nodes/json.ts'
import { freePort } from '../support/ports.ts'
import { serve } from '../support/serving.ts'

export type LdkNode = Awaited<ReturnType<typeof startLdkNode>>

/** @param options.binary what `cargo build` made of clients/ldk. */
export async function startLdkNode(
  t: After,
  { binary, folder, chain }: { binary: string; folder: string; chain: Chain },
) {
  const { rpc } = chain
  const rpcPort = await startShim(t, chain)
  const port = await freePort()
  const child = spawn(
    binary,
    [folder, String(rpcPort), rpc.user, rpc.password, String(port)],
    // It ends with its stdin, so also when this process is killed.
    { stdio: ['pipe', 'pipe', 'inherit'] },
  )
  const ended = new Promise((resolve) => child.once('exit', resolve))
  t.after(async () => {
    child.stdin.end()
    await ended
  })
  const waiting = new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>()
  createInterface({ input: child.stdout }).on('line', (line) => {
    const { id, result, error } = object(JSON.parse(line))
    const asked = waiting.get(Number(id))
    waiting.delete(Number(id))
    if (error === undefined) asked?.resolve(result)
    else asked?.reject(new Error(`ldk: ${error}`))
  })
  void ended.then((code) => {
    for (const { reject } of waiting.values()) reject(new Error(`ldk ended with ${code}`))
  })
  let calls = 0
  const call = (method: string, given: JsonObject = {}): Promise<unknown> =>
    new Promise((resolve, reject) => {
      const id = ++calls
      waiting.set(id, { resolve, reject })
      child.stdin.write(`${JSON.stringify({ id, method, ...given })}\n`)
    })
  const { nodeId } = object(await call('info'))
  return {
    nodeId: string(nodeId),
    /** For other nodes. */
    address: `127.0.0.1:${port}`,
    call,
    /** Pays an invoice. Resolves to the preimage after the payment. */
    pay: async (bolt11: string) => string(await call('pay', { bolt11 })),
  }
}

/** What Bitcoin Core answers, and btcd does not. The fees are those of an empty chain. */
const MADE_UP: Record<string, unknown> = {
  estimatesmartfee: { feerate: 0.00001, blocks: 6 },
  getmempoolinfo: { loaded: true, size: 0, mempoolminfee: 0.00001, minrelaytxfee: 0.00001 },
}

/** An HTTP server that speaks for btcd, whose RPC is on TLS. Returns its port. */
async function startShim(t: After, { rpc }: Chain): Promise<number> {
  const btcd = new Pool(`https://${rpc.host}`, {
    connect: { ca: readCertificate(rpc.certificate) },
  })
  const authorization = `Basic ${Buffer.from(`${rpc.user}:${rpc.password}`).toString('base64')}`

  async function answer(asked: JsonObject): Promise<JsonObject> {
    const made = MADE_UP[String(asked.method)]
    if (made !== undefined) return { result: made, error: null, id: asked.id }
    const response = await btcd.request({
      method: 'POST',
      path: '/',
      headers: { authorization },
      body: JSON.stringify({ ...asked, jsonrpc: '1.0' }),
    })
    const told = object(await response.body.json())
    if (asked.method === 'getblockheader' && typeof told.result === 'object' && told.result) {
      const header = object(told.result)
      // Each block of regtest is worth two hashes.
      const work = 2 * (Number(header.height) + 1)
      told.result = { ...header, chainwork: work.toString(16).padStart(64, '0') }
    }
    return told
  }

  t.after(() => btcd.destroy())
  const origin = await serve(t, async (request, response) => {
    const body = await answer(object(await json(request))).then(JSON.stringify, (error: unknown) =>
      JSON.stringify({ result: null, error: { code: -1, message: `${error}` } }),
    )
    response.writeHead(200, { 'content-type': 'application/json' }).end(body)
  })
  return Number(new URL(origin).port)
}
