/** The TypeScript projects of people who have installed the tarball: their compiler checks every declaration. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const COMPILER = fileURLToPath(new URL('../../node_modules/.bin/tsc', import.meta.url))

/** What a project knows of its platform, and how it finds packages. */
export type ReadersOptions = { lib: string[]; types: string[]; module: 'nodenext' | 'esnext' }

/**
 * Compiles the program in this folder, which has the package in its `node_modules`. Fails with the messages of the
 * compiler.
 */
export async function assertCompiles(
  folder: string,
  program: string,
  { lib, types, module }: ReadersOptions,
): Promise<void> {
  const project = join(folder, `project-${module}-${lib.length}`)
  await mkdir(project)
  await writeFile(join(project, 'package.json'), '{"type":"module"}')
  await writeFile(join(project, 'program.ts'), program)
  const compilerOptions = {
    target: 'es2023',
    lib,
    types,
    module,
    noEmit: true,
    moduleResolution: module === 'esnext' ? 'bundler' : 'nodenext',
    strict: true,
    skipLibCheck: false,
  }
  const config = { compilerOptions, include: ['program.ts'] }
  await writeFile(join(project, 'tsconfig.json'), JSON.stringify(config))
  await promisify(execFile)(COMPILER, ['-p', project]).catch(({ stdout }) => assert.fail(stdout))
}

/** A page that sells, and shows what was bought. It uses what most programs use. */
export const OF_A_BROWSER = `
import {
  createMayfly, lndWallet, MayflyError, nwcWallet, parseCapability, type CatchCapability,
  type PaymentQuote, type Wallet, WalletError,
} from 'mayfly/client'
export * from 'mayfly/client'

const mayfly = createMayfly({ baseUrl: location.origin, maxSats: 500 })
const onInvoice = ({ bolt11, amountSats }: PaymentQuote): void => {
  document.body.textContent = bolt11 + amountSats.toFixed()
}
const inbox: CatchCapability = await mayfly.buyCatch({ planId: 'spark', onInvoice })
for await (const { sequence, body } of mayfly.catch(inbox).stream({ after: 0 })) {
  document.title = sequence.toFixed() + body
}
const bytes: Uint8Array<ArrayBuffer> = await mayfly.catch(inbox).body('1')
new Blob([bytes])

const client = { payInvoice: async ({ invoice }: { invoice: string }) => ({ preimage: invoice }) }
const wallets: Wallet[] = [
  nwcWallet(client),
  lndWallet({ url: 'https://127.0.0.1:8080', macaroonHex: '00', maxFeeSats: 20 }),
]
for (const wallet of wallets) {
  const paying = createMayfly({ baseUrl: location.origin, wallet })
  const { code } = await paying.buyWhisper({ planId: 'spark', data: new Uint8Array(3), readLimit: 1 })
  const { data: opened } = await mayfly.readWhisper(code)
  document.title = opened.length.toFixed()
  const monitor = await paying.buyPulse({ planId: 'spark' })
  await mayfly.pulse(monitor).ping()
}
try {
  parseCapability('{}')
} catch (error) {
  if (error instanceof MayflyError) document.title = error.phrase
  if (error instanceof WalletError && error.outcome === 'unknown') throw error
}
// The types are those of the service, and nothing is any.
// @ts-expect-error
const wrong: { nothingOfThis: 1 } = await mayfly.catalog()
// @ts-expect-error
await mayfly.buyCatch({ planId: 'free', onInvoice })
export { wrong }
`

/** A server that sells its routes by GATE. */
export const OF_A_SERVER = `
import { createServer } from 'node:http'
import { createGate, fileStore, type GateReceipt, memoryStore } from 'mayfly/gate'
export * from 'mayfly/gate'

const gate = createGate({
  url: 'https://mayfly.example', projectId: 'p', capability: 'c',
  store: process.argv.length > 2 ? fileStore('receipts') : memoryStore(),
})
const render = gate.express('render')
createServer((request, response) => {
  render(request, response, () => {
    const receipt: GateReceipt | null = gate.receiptOf(request)
    response.end(receipt === null ? '' : JSON.stringify(receipt))
  })
})
export const paid = gate.fetch('render', () => new Response('done'))
// @ts-expect-error
createGate({ url: 'https://mayfly.example' })
`
