import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { glob, readFile } from 'node:fs/promises'
import { suite, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { OPTIONS, WATCH_VARIABLES } from '../../src/config.ts'

const ROOT = new URL('../../', import.meta.url)
const text = (file: string): Promise<string> => readFile(new URL(file, ROOT), 'utf8')
const isThere = (file: string): boolean => existsSync(new URL(file, ROOT))

const settings: { name: string; isSecret?: true }[] = Object.values(OPTIONS)
const NAMES = new Set([
  ...settings.flatMap(({ name, isSecret }) => (isSecret ? [name, `${name}_FILE`] : [name])),
  ...Object.values(WATCH_VARIABLES),
])

suite('the files for deployment', () => {
  test('the files for deployment name only settings that exist', async () => {
    const pages = await Array.fromAsync(glob('docs/*.md', { cwd: fileURLToPath(ROOT) }))
    assert.ok(pages.includes('docs/deploy.md'))
    for (const file of ['Dockerfile', 'compose.yaml', 'deploy/mayfly.service', ...pages]) {
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
    const page = await text('docs/deploy.md')
    for (const name of defined) assert.ok(page.includes(`> ${name}\n`), `${name} is made`)

    const unit = await text('deploy/mayfly.service')
    const [, settings = ''] = /^cat > (\S+) <<'END'$/m.exec(page) ?? []
    assert.match(unit, new RegExp(`^EnvironmentFile=${settings}$`, 'm'))
    const folder = settings.slice(0, settings.lastIndexOf('/') + 1)
    const files = [...page.matchAll(/^MAYFLY_[A-Z_]+_FILE=(.+)$/gm)].map(([, file = '']) => file)
    assert.equal(files.length, 3)
    for (const file of files) {
      assert.ok(page.includes(`> ${file.replace(folder, '')}\n`), `${file} is made`)
    }
  })

  test('compose.yaml bounds the memory of all that it runs, and believes one proxy and no neighbour', async () => {
    const compose = await text('compose.yaml')
    const [services = ''] = compose.split(/^networks:$/m)
    const images = services.match(/^ {4}image: /gm) ?? []
    assert.equal((services.match(/^ {4}mem_limit: \d+g$/gm) ?? []).length, images.length)
    assert.match(await text('deploy/mayfly.service'), /^MemoryMax=\d+G$/m)
    const [, trusted] = /MAYFLY_TRUSTED_PROXIES:-([^}]+)\}/.exec(compose) ?? []
    const [, gateway] = /gateway: ([\d.]+)/.exec(compose) ?? []
    assert.ok(gateway)
    assert.equal(trusted, gateway)
  })

  test('each link between the pages leads to a page', async () => {
    const pages = await Array.fromAsync(glob('docs/*.md', { cwd: fileURLToPath(ROOT) }))
    for (const page of pages) {
      const links = (await text(page)).matchAll(/\]\(([\w-]+\.md)(#[\w-]+)?\)/g)
      for (const [, file = '', anchor] of links) {
        assert.ok(isThere(`docs/${file}`), `${page} → ${file}`)
        if (anchor === undefined) continue
        const headings = [...(await text(`docs/${file}`)).matchAll(/^#+ (.*)$/gm)].map(
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
})
