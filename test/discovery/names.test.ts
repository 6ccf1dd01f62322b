/** Nothing that is printed or served runs or installs a package by the name that nobody owns yet. */
import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { parseJson } from '../../src/lib/json.ts'
import { startServer } from '../support/server.ts'

/** A runner or installer of packages, and on the same line our name by itself: no path, no file. */
const RUNNERS =
  'npx|npm (?:x|exec|i|install|add|init|create)|pnpx|pnpm (?:dlx|add|i)|yarn (?:dlx|add)|bunx|bun (?:x|add)|npm:|uvx|pip3? install|pipx'
const NAME = '(?<![\\w./@-])mayfly(?:@[\\w.^~-]+)?(?![\\w./-])'
const BY_NAME = new RegExp(`(?:\\b(?:${RUNNERS})\\b[^\\n\`]*|"(?:${RUNNERS})"[^\\n]*)${NAME}`, 'i')

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const WRITTEN = [
  ...['README.md', 'AGENTS.md', 'CHANGELOG.md', 'server.json', 'openapi.json'],
  ...['docs/**/*.md', 'src/**/*.{ts,html}', 'bin/*', 'examples/**/*.*', 'deploy/**/*.*'],
]

test('no help, document or page runs the package by name', () => {
  const files = globSync(WRITTEN, { cwd: ROOT })
  assert.ok(files.length > 500, String(files.length))
  for (const file of files) {
    const text = readFileSync(ROOT + file, 'utf8')
    const found = text.split('\n').filter((line) => BY_NAME.test(line))
    // AGENTS.md says how the owner publishes it.
    assert.deepEqual(
      found.filter((line) => !line.includes('npm publish')),
      [],
      file,
    )
  }
})

test('nothing that the service serves runs the package by name', async (t) => {
  const { url } = await startServer(t)
  const paths = new Set([
    ...['/', '/llms.txt', '/openapi.json', '/openapi-all.json', '/robots.txt', '/mcp/server-card'],
    ...['/.well-known/ai-catalog.json', '/.well-known/agent-skills/index.json'],
  ])
  for (const path of paths) {
    const answer = await fetch(url + path)
    assert.equal(answer.status, 200, path)
    const text = await answer.text()
    assert.deepEqual(
      text.split('\n').filter((line) => BY_NAME.test(line)),
      [],
      path,
    )
    for (const [link = ''] of JSON.stringify(parseJson(text) ?? text).matchAll(
      /(?<=["( ])(?:http:[^"\\ )]+|\/[\w./-]+)/g,
    )) {
      const address = URL.canParse(link, url) ? new URL(link, url) : null
      const isDocument = /\.(?:md|txt|json)$|^\/(?:read|catch|pulse|whisper|gate)$/.test(
        address?.pathname ?? '',
      )
      if (address?.origin === url && isDocument && !address.pathname.startsWith('/api/')) {
        if ((await fetch(address)).status === 200) paths.add(address.pathname)
      }
    }
  }
  assert.ok(paths.size > 10, [...paths].join())
})
