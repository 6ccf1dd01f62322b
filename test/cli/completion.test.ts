import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { completed } from '../../src/cli/completion.ts'
import { commandsOf, createProgram } from '../../src/cli/program.ts'
import { BIN } from '../support/bin.ts'
import { temporaryFolder } from '../support/folder.ts'
import { aUser } from '../support/user.ts'

describe('what a Tab offers', async () => {
  const program = await createProgram()
  const saved: Record<string, string[]> = { catch: ['hooks', 'other'], pulse: ['backup'] }
  const names = (product: string | null): string[] =>
    product === null ? Object.values(saved).flat() : (saved[product] ?? [])

  /** The texts for the last word of a line; `file` if the shell offers files instead. */
  const offered = (line: string): string[] | 'file' => {
    const { offered: all, isFile } = completed(program, line.split(' ').slice(1), names)
    return isFile ? 'file' : all.map(({ text }) => text)
  }

  test('a Tab offers the commands of the place that the cursor is at', () => {
    assert.deepEqual(offered('mayfly ca'), ['catalog', 'catch'])
    assert.deepEqual(offered('mayfly catch ev'), ['events'])
    assert.deepEqual(offered('mayfly --url http://x --json catch li'), ['listen'])
    assert.deepEqual(offered('mayfly comp'), ['completion'])
  })

  test('a Tab offers the names of what is saved, and of the product that the command takes', () => {
    assert.deepEqual(offered('mayfly catch listen '), ['hooks', 'other'])
    assert.deepEqual(offered('mayfly pulse run '), ['backup'])
    assert.deepEqual(offered('mayfly show '), ['hooks', 'other', 'backup'])
    assert.deepEqual(offered('mayfly show ba'), ['backup'])
    assert.deepEqual(offered('mayfly alerts backup --inbox h'), ['hooks'])
    assert.deepEqual(offered('mayfly whisper send x --when-late '), ['backup'])
    assert.deepEqual(offered('mayfly catch listen hooks '), [])
  })

  test('a Tab passes over options and their values, and offers options after a dash', () => {
    assert.deepEqual(offered('mayfly catch listen hooks --fo'), ['--forward'])
    assert.deepEqual(offered('mayfly buy pulse --name buy --pl'), ['--plan'])
    assert.deepEqual(offered('mayfly buy pulse --name '), [])
    assert.deepEqual(offered('mayfly completion '), ['bash', 'zsh', 'fish'])
  })

  test('a Tab offers the plans', () => {
    assert.deepEqual(offered('mayfly buy catch --plan '), ['spark', 'standard', 'long'])
    assert.deepEqual(offered('mayfly whisper send --plan l'), ['long'])
  })

  test('a Tab leaves files to the shell: for files, and for the job of pulse run', () => {
    for (const line of [
      'mayfly whisper send ',
      'mayfly import ',
      'mayfly whisper read - --out ',
      'mayfly pulse run backup -- ',
    ]) {
      assert.equal(offered(line), 'file', line)
    }
  })

  test('a Tab offers every option of every command', () => {
    for (const command of commandsOf(program)) {
      const path = []
      for (let one = command; one.parent; one = one.parent) path.unshift(one.name())
      const all = offered(`mayfly ${path.join(' ')} --`)
      for (const { long } of command.options) assert.ok(all.includes(String(long)), String(long))
    }
  })
})

test('in bash, the printed script offers commands, options, and names that are saved here', async (t) => {
  const { cli } = await aUser(t, { hooks: 'catch', backup: 'pulse' })
  const folder = await temporaryFolder(t)
  const { code, out: script } = await cli.run(['completion', 'bash'])
  assert.equal(code, 0)
  writeFileSync(join(folder, 'mayfly'), `#!/bin/sh\nexec '${process.execPath}' '${BIN}' "$@"\n`, {
    mode: 0o755,
  })
  // What the package bash-completion brings, as far as the script needs it.
  const words = `_get_comp_words_by_ref() { cur=\${COMP_WORDS[COMP_CWORD]}; words=("\${COMP_WORDS[@]}"); cword=$COMP_CWORD; }`
  const offered = (line: string): string[] => {
    const given = line.split(' ').map((word) => `'${word}'`)
    const run = `COMP_WORDS=(${given.join(' ')}); COMP_CWORD=${given.length - 1}; COMP_LINE='${line}'; COMP_TYPE=9; __mayfly_complete; printf '%s\\n' "\${COMPREPLY[@]%% *}"`
    const out = execFileSync('bash', ['--norc', '-c', `${words}\n${script}\n${run} 2>/dev/null`], {
      encoding: 'utf8',
      env: { PATH: `${folder}:${process.env.PATH}`, XDG_DATA_HOME: join(cli.folder, '..') },
    })
    return out.split(/\s+/).filter((word) => word !== '')
  }
  assert.deepEqual(offered('mayfly catch listen '), ['hooks'])
  assert.deepEqual(offered('mayfly pulse ping ba'), ['backup'])
  assert.deepEqual(offered('mayfly catch listen hooks --fo'), ['--forward'])
  const other = await cli.run(['completion', 'csh'])
  assert.deepEqual([other.code, /bash, zsh, fish/.test(other.err)], [2, true])
})
