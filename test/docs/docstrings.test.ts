/** What an editor shows of the SDK: every export is explained, and every example is typed right. */
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { assertTyped } from './typed-examples.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))
const sdk = join(root, 'src/client/index.ts')

type Export = { name: string; isType: boolean; file: string }

test('every export of the SDK has a docstring, and every function and class an example', async () => {
  const exported = await exportsOfTheSdk()
  assert.ok(exported.length > 70)
  for (const { name, file, isType } of exported) {
    const [, doc = ''] = declarationOf(name).exec(await readFile(file, 'utf8')) ?? []
    assert.match(doc, isType ? /\w/ : /```ts\n/, `${name} in ${relative(root, file)}`)
  }
})

test('the examples in the docstrings are typed right', async (t) => {
  const exported = await exportsOfTheSdk()
  const texts = new Map<string, string>()
  for (const { file } of exported) texts.set(file, await readFile(file, 'utf8'))
  const examples = [...texts.values()].flatMap((text) =>
    [...text.matchAll(/^ *\* ```ts\n(.*?)^ *\* ```$/gms)].map(([, lines = '']) =>
      lines.replaceAll(/^ *\* ?/gm, '').replaceAll(/^import .*$/gm, ''),
    ),
  )
  assert.ok(examples.length > 60)
  const names = exported.map(({ name, isType }) => (isType ? `type ${name}` : name))
  await assertTyped(
    t,
    `import { ${[...new Set(names)].join(', ')} } from 'mayfly/client'
${A_READER_HAS}
${examples.map((example) => `export async function _${counted()}() {\n${example}\n}`).join('\n')}
`,
  )
})

/** What examples take for granted. `capability` is one of whichever product they are about. */
const A_READER_HAS = `
declare const mayfly: Mayfly
declare const inbox: CatchClient & Pick<CatchCapability, 'publicId'>
declare const monitor: PulseClient
declare const receipt: ReceiptClient
declare const gate: GateClient
declare const wallet: Wallet
declare const capability: any
declare const baseUrl: string, text: string, code: string, password: string, preimage: string
declare const publicId: string, readToken: string, projectId: string, intentId: string, macaroonHex: string, rune: string
declare const nostrWalletConnectUrl: string
declare const data: Uint8Array, envelope: Uint8Array<ArrayBuffer>, key: Uint8Array<ArrayBuffer>
declare const event: CatchEvent, events: CatchEvent[], page: EventPage, quote: PaymentQuote
declare const error: unknown, jwks: unknown
declare function show(what: unknown): void
declare function onInvoice(quote: PaymentQuote): void
declare const NWCClient: new (options: { nostrWalletConnectUrl: string }) => NwcClient
`

let count = 0
const counted = (): number => ++count

/** A declaration with the docstring right before it. */
const declarationOf = (name: string): RegExp =>
  new RegExp(
    `(/\\*\\*(?:(?!\\*/)[^])*\\*/\\n)export (?:type|class|const|(?:async )?function) ${name}\\b`,
  )

async function exportsOfTheSdk(): Promise<Export[]> {
  const text = await readFile(sdk, 'utf8')
  const passedOn = [...text.matchAll(/^export (type )?\{([^}]*)\} from '([^']+)'/gm)]
  const own = [...text.matchAll(/^export (type|function) (\w+)/gm)]
  return [
    ...passedOn.flatMap(([, allTypes, names = '', from = '']) =>
      names.split(/,\s*/).flatMap((given) => {
        const name = given.trim().replace(/^type /, '')
        const isType = allTypes !== undefined || given.trim().startsWith('type ')
        return name === '' ? [] : [{ name, isType, file: join(root, 'src/client', from) }]
      }),
    ),
    ...own.map(([, kind, name = '']) => ({ name, isType: kind === 'type', file: sdk })),
  ]
}
