/**
 * The second tarball of `npm run package`, `build/mayfly-client-<version>.tgz`: the SDK alone, for programs and pages
 * that need nothing else. It has no dependency. Its files are those of the first tarball; only the types that the SDK
 * takes from the service are written out, since their source computes them from schemas with a package. Beside the
 * modules lies one file for browsers, `mayfly-client.min.js`. The same source gives the same bytes.
 */
import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { buildSync } from 'esbuild'
import { API, NodeBuilderFlags, type Program } from 'typescript/unstable/sync'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const SRC = join(ROOT, 'src')
/** The rooms whose declarations name no package. */
const OWN = /^(?:client|lib|protocol)\//
const ENTRY = 'client/index.js'

/**
 * Makes the tarball in this folder and returns its path.
 * @param dist what `npm run package` has compiled.
 */
export function makeClientPackage(folder: string, dist: string): string {
  const staged = join(folder, 'client')
  rmSync(staged, { recursive: true, force: true })
  const types = reachable(dist, ENTRY.replace('.js', '.d.ts'))
  for (const file of [...reachable(dist, ENTRY), ...types.filter((name) => OWN.test(name))]) {
    write(join(staged, 'dist', file), readFileSync(join(dist, file)))
  }
  for (const [file, text] of writtenTypes(types.filter((name) => !OWN.test(name)))) {
    write(join(staged, 'dist', file), text)
  }
  bundle(join(staged, 'mayfly-client.min.js'))
  copyFileSync(join(ROOT, 'LICENSE'), join(staged, 'LICENSE'))
  copyFileSync(join(SRC, 'client/README.md'), join(staged, 'README.md'))
  write(join(staged, 'package.json'), `${JSON.stringify(manifest(), null, 2)}\n`)
  for (const entry of readdirSync(staged, { recursive: true, withFileTypes: true })) {
    if (entry.isFile()) chmodSync(join(entry.parentPath, entry.name), 0o644)
  }
  const pack = ['pack', '--json', '--ignore-scripts', '--pack-destination', folder]
  const packed = execFileSync('npm', pack, {
    cwd: staged,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const [{ filename }] = JSON.parse(packed) as [{ filename: string }]
  return join(folder, filename)
}

function write(file: string, content: string | Uint8Array): void {
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, content)
}

/** The files that this one imports, itself included, as paths in `dist`. */
function reachable(dist: string, entry: string): string[] {
  const isTypes = entry.endsWith('.d.ts')
  const found = new Set<string>()
  const queue = [entry]
  for (let file = queue.pop(); file !== undefined; file = queue.pop()) {
    if (found.has(file)) continue
    found.add(file)
    // Those of the service are written anew, so what they import does not matter.
    if (!OWN.test(file)) continue
    const text = readFileSync(join(dist, file), 'utf8')
    for (const [, to = ''] of text.matchAll(/(?:from |import\()['"](\.[^'"]+)['"]/g)) {
      const path = join(dirname(file), to)
      queue.push(isTypes ? path.replace(/\.[jt]s$/, '.d.ts') : path)
    }
  }
  return [...found].sort()
}

/** Declarations with every exported type of these files written out, by path in `dist`. */
function writtenTypes(files: readonly string[]): Map<string, string> {
  const api = new API({ cwd: ROOT })
  try {
    const snapshot = api.updateSnapshot({ openProject: join(ROOT, 'tsconfig.build.json') })
    const [project] = snapshot.getProjects()
    if (project === undefined) throw new Error('tsconfig.build.json is no project')
    const { checker, program } = project
    /** A file that imports nothing: so no name of another one may stand in what is written. */
    const nowhere = sourceOf(program, 'lib/json.ts')
    const written = new Map<string, Map<string, string>>()
    /** All types of a file, or the one that another type names. */
    const queue: { file: string; only?: string }[] = files.map((file) => ({ file }))
    for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
      const { file, only } = next
      const source = file.replace('.d.ts', '.ts')
      const text = readFileSync(join(SRC, source), 'utf8')
      const module = checker.getSymbolAtLocation(sourceOf(program, source))
      if (module === undefined) throw new Error(`${source} exports nothing`)
      const types = written.get(file) ?? new Map<string, string>()
      written.set(file, types)
      for (const symbol of checker.getExportsOfModule(module)) {
        const { name } = symbol
        const isAsked = only === undefined || only === name
        if (!isAsked || types.has(name) || !typeIn(text, name)) continue
        const flags = NodeBuilderFlags.NoTruncation | NodeBuilderFlags.InTypeAlias
        const type = checker.getDeclaredTypeOfSymbol(symbol)
        const body = checker.typeToString(type, nowhere, flags)
        const own = body.replaceAll(
          /import\("([^"]+)"\)\.(\w+)/g,
          (_, to: string, named: string) => {
            const path = join('lib', to)
            if (!OWN.test(path)) queue.push({ file: path.replace('.ts', '.d.ts'), only: named })
            const step = relative(dirname(file), path).replace('.ts', '.js')
            return `import("${step.startsWith('.') ? step : `./${step}`}").${named}`
          },
        )
        types.set(name, `${docstring(text, name)}export type ${name} = ${own};`)
      }
    }
    return new Map(
      [...written].map(([file, types]) => [file, `${[...types.values()].join('\n')}\n`]),
    )
  } finally {
    api.close()
  }
}

function sourceOf(program: Program, file: string) {
  const source = program.getSourceFile(join(SRC, file))
  if (source === undefined) throw new Error(`src/${file} is not in the program`)
  return source
}

const declaration = (name: string): RegExp => new RegExp(`^export type ${name} =`, 'm')

const typeIn = (text: string, name: string): boolean => declaration(name).test(text)

/** The comment above a type, which editors show. */
function docstring(text: string, name: string): string {
  const before = text.slice(0, text.search(declaration(name)))
  const start = before.lastIndexOf('/**')
  const isDirect = start !== -1 && before.slice(start).trimEnd().endsWith('*/')
  return isDirect && before.slice(start).split('*/').length === 2 ? before.slice(start) : ''
}

/** One file for pages that have no bundler of their own. */
function bundle(outfile: string): void {
  buildSync({
    entryPoints: [join(SRC, 'client/index.ts')],
    outfile,
    bundle: true,
    minify: true,
    format: 'esm',
    platform: 'browser',
    target: 'es2023',
    legalComments: 'none',
  })
}

function manifest(): object {
  const { name, version, description, license, type, repository } = JSON.parse(
    readFileSync(join(ROOT, 'package.json'), 'utf8'),
  ) as Record<string, unknown>
  return {
    name: `${name}-client`,
    version,
    description,
    license,
    type,
    ...(repository === undefined ? {} : { repository }),
    sideEffects: false,
    exports: {
      '.': { types: './dist/client/index.d.ts', default: './dist/client/index.js' },
      './mayfly-client.min.js': './mayfly-client.min.js',
      './package.json': './package.json',
    },
    publishConfig: { access: 'public', ...(repository === undefined ? {} : { provenance: true }) },
  }
}
