/**
 * `node scripts/check-arrows.ts`: checks that src/ keeps to its rooms and the arrows between them
 * (AGENTS.md). Prints a line for each wrong import, and exits with 1 if it has found any.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { posix } from 'node:path'
import manifest from '../package.json' with { type: 'json' }
import { type AnyProduct, OPERATED_PRODUCTS, PRODUCT_NAMES } from '../src/lib/product-names.ts'

/** Paths inside src/, such as `http/app.ts`, and their text. */
export type Sources = ReadonlyMap<string, string>

/** The wrong imports of these files, a line each: `src/a.ts → src/b.ts: why`. */
export function checkArrows(sources: Sources): string[] {
  const graph = new Map([...sources].map(([file, text]) => [file, importsOf(file, text)]))
  const lines: string[] = []
  for (const [file, imports] of graph) {
    for (const arrow of imports) {
      const why = whyWrong(file, arrow, sources)
      if (why) lines.push(`src/${file} → ${shown(arrow)}: ${why}`)
    }
  }
  return [...lines, ...cycles(graph)]
}

/** The tools that a clone alone needs as it runs. A built package has what they make. */
const TOOLS: Record<string, string> = { 'http/pages/assets.ts': 'esbuild' }

const PRODUCTS = [...PRODUCT_NAMES, ...(Object.keys(OPERATED_PRODUCTS) as AnyProduct[])]
const FOLDERS = [
  'cli',
  'metrics',
  'discovery',
  'http',
  'payment',
  'lightning',
  'alerts',
  'switches',
  'db',
  'secrets',
  'protocol',
  'lib',
  'client',
  'gate-middleware',
  'tools',
  'service',
  'web',
]
type Room =
  | AnyProduct
  | 'main'
  | 'cli'
  | 'service'
  | 'settings'
  | 'metrics'
  | 'discovery'
  | 'http'
  | 'payment'
  | 'lightning'
  | 'alerts'
  | 'switches'
  | 'db'
  | 'secrets'
  | 'protocol'
  | 'lib'
  | 'client'
  | 'gate-middleware'
  | 'tools'
  | 'remote tools'
  | 'web'

/** Leaves of `service/` from which the wiring and the commands set up the service. */
const SETTINGS = /^service\/(?:(?:config|catalog|rates|secret-file|store-identity)\.ts$|settings\/)/

const BELOW_PRODUCTS = [
  'http',
  'payment',
  'lightning',
  'alerts',
  'switches',
  'db',
  'secrets',
  'protocol',
  'lib',
] as const

/** The rooms that a room may import, besides itself. A room not listed here is refused. */
const ARROWS: Record<Exclude<Room, AnyProduct>, readonly Room[]> = {
  main: ['cli'],
  cli: ['client', 'tools', 'settings', 'protocol', 'lib'],
  // The wiring: the only room that knows all others.
  service: ['settings', 'metrics', 'discovery', 'remote tools', ...PRODUCTS, ...BELOW_PRODUCTS],
  settings: ['lightning', 'db', 'protocol', 'lib'],
  metrics: ['http', 'lightning', 'db', 'protocol', 'lib'],
  discovery: ['http', 'lightning', 'lib'],
  tools: ['protocol', 'lib'],
  'remote tools': ['tools', 'http', 'protocol', 'lib'],
  http: ['payment', 'lightning', 'alerts', 'switches', 'db', 'secrets', 'protocol', 'lib'],
  payment: ['lightning', 'db', 'secrets', 'protocol', 'lib'],
  lightning: ['protocol', 'lib'],
  alerts: ['db', 'secrets', 'protocol', 'lib'],
  switches: ['db', 'lib'],
  db: ['protocol', 'lib'],
  secrets: ['protocol', 'lib'],
  protocol: ['lib'],
  lib: [],
  web: ['client', 'protocol', 'lib'],
  client: ['protocol', 'lib'],
  'gate-middleware': ['client', 'protocol', 'lib'],
}

const isProduct = (room: Room): room is AnyProduct => PRODUCTS.some((product) => product === room)
const arrowsOf = (room: Room): readonly Room[] => (isProduct(room) ? BELOW_PRODUCTS : ARROWS[room])

/** Commands that run or repair the service. All other commands use the client. */
const OPERATOR_COMMANDS = 'cli/operator/'
const OPERATOR_ROOMS: readonly Room[] = [
  'service',
  ...PRODUCTS,
  'payment',
  'lightning',
  'db',
  'secrets',
]

/** The files that other rooms may import from a room with several implementations. */
const PORTS: Partial<Record<Room, readonly string[]>> = {
  lightning: ['lightning/lightning.ts'],
  db: [
    'db/db.ts',
    'db/meta.ts',
    'db/clock.ts',
    'db/hints.ts',
    'db/leases.ts',
    'db/coalesce.ts',
    'db/remembered.ts',
    'db/server-urls.ts',
  ],
}

/** Wire formats that need libraries of the server. Browsers load all others. */
const SERVER_ONLY = new Set([
  'protocol/bolt11-sign.ts',
  'protocol/hmac.ts',
  'protocol/ip-address.ts',
  'protocol/l402-token.ts',
  'protocol/lnurl.ts',
  'protocol/macaroon.ts',
  'protocol/payment-challenge-id.ts',
  'protocol/preimage.ts',
  'protocol/webhook-signing.ts',
])

/** Rooms that a browser loads. They import nothing but types from a package, and nothing from Node. */
const BROWSER_ROOMS = new Set<Room>(['lib', 'protocol', 'client', 'web'])

/** Packages that are bundled into the pages. A built package needs none of them. */
const BUNDLED = new Set(['preact', 'preact/hooks', '@preact/signals', 'qr'])

/** Arrows besides those above. With `typesOnly`, nothing is imported when the code runs. */
const EXCEPTIONS: readonly { from: RegExp; to: RegExp; typesOnly: boolean }[] = [
  // The SDK uses the service's types, so that the two cannot differ.
  {
    from: /^client\//,
    to: new RegExp(
      `^(?:(?:${PRODUCTS.join('|')})/(?:[a-z]+-)?schema|http/(?:alerts/schema|schemas|errors)|payment/quote)\\.ts$`,
    ),
    typesOnly: true,
  },
  // A backend may store facts of its own. The port has the statements that join an order's unit.
  { from: /^lightning\//, to: /^db\/db\.ts$/, typesOnly: true },
  // The measured store and node say which observer they report to.
  { from: /^metrics\//, to: /^(?:db|lightning)\/measured\.ts$/, typesOnly: true },
  // The limits know their names and defaults. The rates file only changes them.
  { from: /^service\/rates\.ts$/, to: /^http\/limits\.ts$/, typesOnly: false },
  { from: /^service\/(?:catalog|rates)\.ts$/, to: /^http\/validation\.ts$/, typesOnly: false },
  // The tools describe and check their inputs as the routes do, and know the errors. Nothing there needs a server.
  { from: /^tools\//, to: /^http\/(?:validation|errors)\.ts$/, typesOnly: false },
  // The payer's route belongs to the simulator alone.
  { from: /^http\/server\/simulator\.ts$/, to: /^lightning\/simulator\.ts$/, typesOnly: true },
  // A setting is checked for the schemes of the backends.
  {
    from: /^service\/(?:config|settings\/backends)\.ts$/,
    to: /^lightning\/urls\.ts$/,
    typesOnly: false,
  },
  // The URL of a payer's wallet has the same forms as that of the service's node.
  {
    from: /^cli\/wallet\.ts$/,
    to: /^lightning\/(?:urls|nwc\/client)\.ts$/,
    typesOnly: false,
  },
]

type Arrow =
  | { kind: 'file'; to: string; isType: boolean }
  | { kind: 'bare'; to: string; isType: boolean }
  | { kind: 'unreadable'; to: string }

function whyWrong(file: string, arrow: Arrow, sources: Sources): string | null {
  const from = roomOf(file)
  if (from === null)
    return 'the importing file is in no room; name the room in scripts/check-arrows.ts'
  if (arrow.kind === 'unreadable') return 'this check cannot read the import; write it plainly'
  if (arrow.kind === 'bare') {
    if (from === 'web' && BUNDLED.has(arrow.to)) return null
    if (!isInstalled(arrow) && TOOLS[file] !== arrow.to) {
      return 'an installed Mayfly would not have that package; add it to the dependencies of package.json'
    }
    if (arrow.isType || !BROWSER_ROOMS.has(from) || SERVER_ONLY.has(file)) return null
    return `browsers load ${from}, so it imports no package and nothing of Node`
  }
  const { to } = arrow
  if (!sources.has(to)) return 'there is no such file'
  const room = roomOf(to)
  if (room === null)
    return 'the imported file is in no room; name the room in scripts/check-arrows.ts'
  if (isException(file, arrow)) return null
  const isServerSide = !BROWSER_ROOMS.has(from) || SERVER_ONLY.has(file)
  if (SERVER_ONLY.has(to) && !isServerSide)
    return `browsers load ${from}, and that file is for the server`
  if (from === room) return null
  const isOperator = file.startsWith(OPERATOR_COMMANDS)
  if (!arrowsOf(from).includes(room) && !(isOperator && OPERATOR_ROOMS.includes(room))) {
    return whyNoArrow(from, room)
  }
  const ports = PORTS[room]
  if (ports !== undefined && !ports.includes(to) && from !== 'service' && !isOperator) {
    return `only service/ and the operator's commands pick an implementation; ${from} knows src/${ports.join(' and src/')}`
  }
  return null
}

/** Whether an import is there when the package is installed without its development dependencies. */
function isInstalled({ to, isType }: Arrow & { kind: 'bare' }): boolean {
  const [scope = '', name = ''] = to.split('/')
  const packageName = scope.startsWith('@') ? `${scope}/${name}` : scope
  return isType || to.startsWith('node:') || packageName in manifest.dependencies
}

function isException(file: string, { to, isType }: Arrow & { kind: 'file' }): boolean {
  return EXCEPTIONS.some(
    (some) => some.from.test(file) && some.to.test(to) && (isType || !some.typesOnly),
  )
}

function whyNoArrow(from: Room, to: Room): string {
  if (isProduct(from) && isProduct(to)) return 'products never import each other'
  if (isProduct(to) && (from === 'http' || from === 'payment')) return `${from} knows no product`
  if (from === 'cli') return `a command that is not the operator's goes through the client`
  if (from === 'client')
    return 'the client takes only types of schemas, of errors and of a quote from the service, with `import type`'
  const allowed = arrowsOf(from)
  return allowed.length === 0
    ? `${from} imports nothing but itself`
    : `${from} may import ${allowed.join(', ')}, not ${to}`
}

function roomOf(file: string): Room | null {
  if (file === 'main.ts') return 'main'
  if (SETTINGS.test(file)) return 'settings'
  if (file.startsWith('tools/remote/')) return 'remote tools'
  const [folder = '', ...rest] = file.split('/')
  const isKnown = FOLDERS.includes(folder) || PRODUCTS.some((product) => product === folder)
  return isKnown && rest.length > 0 ? (folder as Room) : null
}

/** Matches import statements. The formatter puts them at the start of a line. */
const STATEMENT =
  /^(?:import\s+(?<importType>type\s+(?!from\b))?(?:[\w$*{},\s]+?\sfrom\s*)?|export\s+(?<exportType>type\s+)?(?:\*(?:\s+as\s+[\w$]+)?|\{[^}]*\})\s*from\s*)'(?<to>[^']+)'/gm
const ANY_IMPORT = /^import\b(?![.(])/gm
const DYNAMIC = /\bimport\(\s*(?:'(?<to>[^']+)'\s*[,)]|(?<other>[^)\n]*))/g

/**
 * Every import, re-export and `import()` of a file. Only `import type` is erased. Under
 * verbatimModuleSyntax, `import { type X }` still loads its file.
 */
function importsOf(file: string, text: string): Arrow[] {
  const arrows: Arrow[] = []
  const add = (to: string, isType: boolean): void => {
    if (!to.startsWith('.')) arrows.push({ kind: 'bare', to, isType })
    else arrows.push({ kind: 'file', to: posix.join(posix.dirname(file), to), isType })
  }
  let imports = 0
  for (const { 0: statement, groups } of text.matchAll(STATEMENT)) {
    if (statement.startsWith('import')) imports++
    add(groups?.to ?? '', Boolean(groups?.importType ?? groups?.exportType))
  }
  if (imports !== [...text.matchAll(ANY_IMPORT)].length) {
    arrows.push({ kind: 'unreadable', to: 'an import statement' })
  }
  for (const { groups } of text.matchAll(DYNAMIC)) {
    if (groups?.to !== undefined) add(groups.to, false)
    else arrows.push({ kind: 'unreadable', to: `import(${groups?.other ?? ''})` })
  }
  return arrows
}

const shown = (arrow: Arrow): string => (arrow.kind === 'file' ? `src/${arrow.to}` : arrow.to)

/** A line for each import that closes a cycle. Imports of types count too. */
function cycles(graph: ReadonlyMap<string, Arrow[]>): string[] {
  const lines: string[] = []
  const done = new Set<string>()
  const path: string[] = []

  function visit(file: string): void {
    if (done.has(file)) return
    const start = path.indexOf(file)
    if (start !== -1) {
      const round = [...path.slice(start), file].map((name) => `src/${name}`)
      lines.push(`${round.join(' → ')}: an import cycle`)
      return
    }
    path.push(file)
    for (const arrow of graph.get(file) ?? []) if (arrow.kind === 'file') visit(arrow.to)
    path.pop()
    done.add(file)
  }

  for (const file of graph.keys()) visit(file)
  return lines
}

/** All TypeScript files and style sheets of src/, or of a copy of it. */
export function readSources(src: URL = new URL('../src/', import.meta.url)): Sources {
  const files = readdirSync(src, { recursive: true, encoding: 'utf8' })
    .map((file) => file.replaceAll('\\', '/'))
    .filter((file) => /\.(?:tsx?|css)$/.test(file))
    .sort()
  // A style sheet imports no code.
  const read = (file: string): string =>
    file.endsWith('.css') ? '' : readFileSync(new URL(file, src), 'utf8')
  return new Map(files.map((file) => [file, read(file)]))
}

if (import.meta.main) {
  const sources = readSources()
  const lines = checkArrows(sources)
  for (const line of lines) process.stderr.write(`${line}\n`)
  if (lines.length > 0) process.exitCode = 1
  else process.stdout.write(`The arrows of ${sources.size} files point the right way.\n`)
}
