import assert from 'node:assert/strict'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { checkArrows, readSources } from '../../scripts/check-arrows.ts'

/** A tree of files that import nothing, but for these. */
function aTree(files: Record<string, string>): Map<string, string> {
  return new Map(
    Object.entries({ ...Object.fromEntries(NAMES.map((name) => [name, ''])), ...files }),
  )
}

const NAMES = [
  'catch/schema.ts',
  'db/db.ts',
  'db/sqlite/sqlite.ts',
  'http/app.ts',
  'lib/clock.ts',
  'lightning/lightning.ts',
  'lightning/simulator.ts',
  'lightning/urls.ts',
  'payment/orders.ts',
  'payment/quote.ts',
  'protocol/bolt11-sign.ts',
  'service/config.ts',
  'service/serve.ts',
]

const to = (target: string): string => `import { x } from '${target}'\n`
const typeTo = (target: string): string => `import type { X } from '${target}'\n`

test('the check finds nothing wrong with src/', () => {
  const sources = readSources()
  assert.ok(sources.has('service/serve.ts'))
  assert.deepEqual(checkArrows(sources), [])
})

test('the check names every file of an import cycle', () => {
  const tree = aTree({
    'lib/a.ts': to('./b.ts'),
    'lib/b.ts': typeTo('./c.ts'),
    'lib/c.ts': `export { x } from './a.ts'\n`,
  })
  assert.deepEqual(checkArrows(tree), [
    'src/lib/a.ts → src/lib/b.ts → src/lib/c.ts → src/lib/a.ts: an import cycle',
  ])
})

/** An import, and the file that has it. */
type Import = [file: string, text: string]

const WRONG: Record<string, Import> = {
  'a lower room that imports a higher one': ['db/db.ts', to('../payment/orders.ts')],
  'a wrong arrow that carries types only': ['payment/orders.ts', typeTo('../http/app.ts')],
  'a wrong arrow in a re-export': [
    'payment/orders.ts',
    `export type { X } from '../http/app.ts'\n`,
  ],
  'a wrong arrow over several lines': [
    'lib/clock.ts',
    `import {\n  type A,\n  b,\n} from '../db/db.ts'\n`,
  ],
  'a wrong arrow that is imported when the code runs': [
    'client/index.ts',
    `const x = await import('../catch/schema.ts')\n`,
  ],
  'a product that imports another': ['pulse/service.ts', to('../catch/schema.ts')],
  'payment that knows a product': ['payment/orders.ts', typeTo('../catch/schema.ts')],
  'HTTP that knows a product': ['http/app.ts', to('../catch/schema.ts')],
  'payment that knows a Lightning backend': [
    'payment/watcher.ts',
    typeTo('../lightning/simulator.ts'),
  ],
  'the Lightning port that loads the store': ['lightning/lightning.ts', to('../db/db.ts')],
  'a product that picks an engine': ['catch/store.ts', to('../db/sqlite/sqlite.ts')],
  'a command that reaches around the client': ['cli/buy.ts', to('../db/db.ts')],
  'a client that loads the service': ['client/index.ts', to('../catch/schema.ts')],
  "a client that takes an order's type, which names types of Node": [
    'client/index.ts',
    typeTo('../payment/orders.ts'),
  ],
  'a client that still loads a file for an inline type': [
    'client/index.ts',
    `import { type X } from '../catch/schema.ts'\n`,
  ],
  'a client with a package': ['client/index.ts', to('typebox')],
  'a wire format with a module of Node': ['protocol/bolt11.ts', `import 'node:crypto'\n`],
  'a wire format for browsers that leads to one for the server': [
    'protocol/bolt11.ts',
    to('./bolt11-sign.ts'),
  ],
  'the configuration that imports the service': ['service/config.ts', to('./serve.ts')],
  'HTTP that reads the configuration': ['http/app.ts', typeTo('../service/config.ts')],
  'a file in no room': ['utils/things.ts', to('../lib/clock.ts')],
  'a package that only development brings along': ['http/app.ts', to('@noble/curves/secp256k1')],
  'an import of a name that is made up when the code runs': [
    'http/app.ts',
    'const x = await import(name)\n',
  ],
}

/** What a text imports, as the check names it. */
function targetOf(file: string, text: string): string {
  const [, specifier = 'import(name)'] = /'([^']+)'/.exec(text) ?? []
  return specifier.startsWith('.') ? join('src', dirname(file), specifier) : specifier
}

for (const [name, [file, text]] of Object.entries(WRONG)) {
  test(`the check refuses ${name}, and names it once`, () => {
    const [line = '', ...more] = checkArrows(aTree({ [file]: text }))
    assert.ok(line.startsWith(`src/${file} → ${targetOf(file, text)}: `), line)
    assert.doesNotMatch(line, /there is no such file/)
    assert.deepEqual(more, [])
  })
}

test('the check says which rooms a room may import', () => {
  const [line = ''] = checkArrows(aTree({ 'db/db.ts': to('../payment/orders.ts') }))
  assert.match(line, /: db may import protocol, lib, not payment$/)
})

const RIGHT: Record<string, Import> = {
  'types of a product in the client': ['client/index.ts', typeTo('../catch/schema.ts')],
  'the type of a quote in the client': ['client/index.ts', typeTo('../payment/quote.ts')],
  'the store in a backend': ['lightning/simulator.ts', typeTo('../db/db.ts')],
  'a statement in the Lightning port': ['lightning/lightning.ts', typeTo('../db/db.ts')],
  'the kinds of backends in the configuration': ['service/config.ts', to('../lightning/urls.ts')],
  'a backend in serve.ts': ['service/serve.ts', to('../lightning/simulator.ts')],
  'the store in an operator command': ['cli/operator/takedown.ts', to('../../db/sqlite/sqlite.ts')],
  'a package in the signing of invoices': ['protocol/bolt11-sign.ts', to('tiny-secp256k1')],
  'an import that is only spoken of': ['lib/clock.ts', "/**\n * import { x } from 'y'\n */\n"],
}

for (const [name, [file, text]] of Object.entries(RIGHT)) {
  test(`the check lets through ${name}`, () => {
    assert.deepEqual(checkArrows(aTree({ [file]: text })), [])
  })
}
