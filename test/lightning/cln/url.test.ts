/** Which files hold a rune of Core Lightning. */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { readClnUrl } from '../../../src/lightning/cln/url.ts'
import { temporaryFolder } from '../../support/folder.ts'

const RUNE = `${'aZ0_-'.repeat(12)}==`
const MAX_CHARACTERS = 16 * 1024

test('a rune is read as it is, or of what createrune prints, however that is spaced', async (t) => {
  const file = join(await temporaryFolder(t), 'rune')
  for (const [text, rune] of [
    [`\n${RUNE}\n`, RUNE],
    [`{"rune":"${RUNE}","unique_id":"3"}`, RUNE],
    [`{\n   "rune" :  "${RUNE}",\n   "unique_id": "3"\n}`, RUNE],
    ['a'.repeat(40), 'a'.repeat(40)],
    ['a'.repeat(MAX_CHARACTERS), 'a'.repeat(MAX_CHARACTERS)],
  ] as const) {
    writeFileSync(file, text)
    assert.equal((await readClnUrl(`cln+https://node?rune=${file}`)).rune, rune)
  }
})

test('a file with anything else is refused, and not quoted', async (t) => {
  const file = join(await temporaryFolder(t), 'rune')
  for (const text of [
    ...['', 'a'.repeat(39), `!${RUNE}`, `${RUNE}!`, `${RUNE}=`, `${RUNE} ${RUNE}`],
    'a'.repeat(MAX_CHARACTERS + 1),
    `{"rune":"!${RUNE}"}`,
    `{"runes":"${RUNE}"}`,
  ]) {
    writeFileSync(file, text)
    await assert.rejects(readClnUrl(`cln+https://node?rune=${file}`), {
      message: 'MAYFLY_LIGHTNING_URL: the rune file holds no rune',
    })
  }
})
