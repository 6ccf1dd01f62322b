import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { glob, readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { OPTIONS } from '../../src/service/config.ts'

const ROOT = new URL('../../', import.meta.url)
const text = (file: string): Promise<string> => readFile(new URL(file, ROOT), 'utf8')
const isThere = (file: string): boolean => existsSync(new URL(file, ROOT))

const settings: { name: string; isSecret?: true }[] = Object.values(OPTIONS)
const NAMES = new Set([
  ...settings.flatMap(({ name, isSecret }) => (isSecret ? [name, `${name}_FILE`] : [name])),
  // Of compose.yaml, and of the tests.
  ...['MAYFLY_USER', 'MAYFLY_TEST_ENGINE'],
])

const FILES = [
  ...['Dockerfile', 'compose.yaml', 'deploy/mayfly.service', 'deploy/mayfly-backup.service'],
  ...['deploy/mayfly', 'deploy/mayfly-backup-failed.service'],
  ...['deploy/backup.sh', 'deploy/restore-drill.sh', 'deploy/healthcheck.sh'],
]

test('the files for deployment name only settings that exist', async () => {
  for (const file of [...FILES, ...(await pages())]) {
    const names = (await text(file)).match(/\bMAYFLY_[A-Z][A-Z_]*[A-Z]\b/g) ?? []
    for (const name of names) assert.ok(NAMES.has(name), `${file} names ${name}`)
  }
})

test('the image sets nothing that has a twin for secrets', async () => {
  const [, set = ''] = /^ENV (.*)$/m.exec(await text('Dockerfile')) ?? []
  for (const pair of set.split(' ')) {
    assert.ok(!NAMES.has(`${pair.split('=')[0]}_FILE`), `${pair} would exclude its twin`)
  }
})

test('the image copies only files that are there, and that the build may see', async () => {
  const seen = (await text('.dockerignore'))
    .split('\n')
    .filter((line) => line.startsWith('!'))
    .map((line) => line.slice(1))
  const copies = (await text('Dockerfile')).matchAll(/^COPY (?!--from)(.*) \S+$/gm)
  const files = [...copies].flatMap(([, list = '']) => list.split(' '))
  assert.ok(files.includes('src'))
  for (const file of files) {
    assert.ok(isThere(file), `${file} is not there`)
    assert.ok(
      seen.some((one) => file === one || file.startsWith(`${one}/`)),
      `${file} is ignored`,
    )
  }
})

test('compose.yaml takes the secrets that it lists, each by its file', async () => {
  const compose = await text('compose.yaml')
  const [, listed = ''] = /^secrets:\n([\s\S]*)$/m.exec(compose) ?? []
  const defined = [...listed.matchAll(/^ {2}([\w-]+):$/gm)].map(([, name]) => name)
  const used = [...compose.matchAll(/\/run\/secrets\/([\w-]+)/g)].map(([, name]) => name)
  assert.deepEqual(defined.toSorted(), used.toSorted())
  const page = await text('docs/run/deploy.md')
  for (const name of defined) assert.ok(page.includes(`> ${name}\n`), `${name} is made`)
  assert.match(compose, /^ {4}user: \$\{MAYFLY_USER:-1000:1000\}$/m, 'who reads them can be set')
  assert.ok(page.includes('MAYFLY_USER'))
})

test('compose.yaml bounds the memory and the logs of all that it runs, and believes one proxy and no neighbour', async () => {
  const compose = await text('compose.yaml')
  const [services = ''] = compose.split(/^networks:$/m)
  const images = services.match(/^ {4}image: /gm) ?? []
  assert.equal((services.match(/^ {4}mem_limit: \d+g$/gm) ?? []).length, images.length)
  assert.match(await text('deploy/mayfly.service'), /^MemoryMax=\d+G$/m)
  assert.equal((services.match(/^ {4}logging: \*logging$/gm) ?? []).length, images.length)
  assert.match(compose, /max-size: \d+m, max-file: '\d+'/)
  const [, trusted] = /MAYFLY_TRUSTED_PROXIES:-([^}]+)\}/.exec(compose) ?? []
  const [, gateway] = /gateway: ([\d.]+)/.exec(compose) ?? []
  assert.ok(gateway)
  assert.equal(trusted, gateway)
})

test('each alert about money is played', async () => {
  const tested = await text('deploy/alerts.test.yml')
  for (const name of ['MayflyOwesSomebody', 'MayflyLostAnOrder', 'MayflyInvoiceUnknown'])
    assert.match(tested, new RegExp(`alertname: ${name}, exp_alerts: \\[[&{]`), name)
})

test('the dashboard is JSON that Grafana imports: each panel has its place and its questions', async () => {
  const { panels, uid } = JSON.parse(await text('deploy/grafana.json'))
  assert.equal(uid, 'mayfly')
  assert.ok(panels.length >= 10)
  const ids = panels.map(({ id }: { id: number }) => id)
  assert.equal(new Set(ids).size, ids.length)
  for (const { title, targets, gridPos } of panels) {
    assert.ok(targets.length > 0 && gridPos.w > 0, title)
    for (const { expr } of targets) assert.equal(typeof expr, 'string', title)
  }
})

test('the image checks its health without Node, and builds with the compiler alone', async () => {
  const file = await text('Dockerfile')
  assert.doesNotMatch(file, /HEALTHCHECK.*node/)
  assert.match(file, /HEALTHCHECK .* CMD \["\/usr\/local\/bin\/mayfly-healthcheck"\]/)
  assert.doesNotMatch(file, /npm ci *$/m)
  const manifest = JSON.parse(await text('package.json'))
  const [, list = ''] = /\[([^\]]*)\]\.map/.exec(file) ?? []
  const names = [...list.matchAll(/'([^']+)'/g)].map(([, name = '']) => name)
  assert.ok(names.includes('typescript'))
  for (const name of names) assert.match(manifest.devDependencies[name] ?? '', /^\d/, name)
})

test('each link of a page leads to a file, and to a heading of it', async () => {
  for (const page of await pages()) {
    const links = (await text(page)).matchAll(/\]\((?!\w+:)([^)#\s]*)(#[\w-]+)?\)/g)
    for (const [, to = '', anchor] of links) {
      const file = to === '' ? page : join(dirname(page), to)
      assert.ok(isThere(file), `${page} → ${file}`)
      if (anchor === undefined) continue
      const headings = [...(await text(file)).matchAll(/^#+ (.*)$/gm)].map(
        ([, heading = '']) =>
          `#${heading
            .toLowerCase()
            .replaceAll(/[^\w\s-]/g, '')
            .replaceAll(' ', '-')}`,
      )
      assert.ok(headings.includes(anchor), `${page} → ${file}${anchor}`)
    }
  }
})

test('what code, units and alerts call a page of docs/ is one', async () => {
  const cwd = fileURLToPath(ROOT)
  const files = await Array.fromAsync(
    glob(
      ['{src,scripts,test,deploy,bench}/**/*.{ts,sh,yml,json,service,timer,conf}', 'compose.yaml'],
      { cwd },
    ),
  )
  for (const file of files) {
    for (const [page] of (await text(file)).matchAll(/(?<![\w/])docs\/[\w/-]+\.md/g)) {
      assert.ok(isThere(page), `${file} names ${page}`)
    }
  }
})

test('what a page, or the list of equivalent mutants, calls a file is one', async () => {
  for (const page of [...(await pages()), 'mutation/equivalent.json']) {
    const files = (await text(page)).matchAll(
      /[`"]((?:bin|bench|clients|deploy|examples|mutation|scripts|src|test)\/[\w./-]+)[`"]/g,
    )
    for (const [, file = ''] of files) {
      assert.ok(file.includes('NAME') || isThere(file), `${page} names ${file}`)
    }
  }
})

async function pages(): Promise<string[]> {
  const found = await Array.fromAsync(glob('docs/**/*.md', { cwd: fileURLToPath(ROOT) }))
  assert.ok(found.includes('docs/run/deploy.md'))
  return ['README.md', 'AGENTS.md', 'CHANGELOG.md', ...found]
}
