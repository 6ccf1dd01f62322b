import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { describe, test } from 'node:test'
import { completionScript } from '../../src/cli/completion.ts'
import { commandsOf, createProgram } from '../../src/cli/program.ts'
import { runCommand } from '../support/command.ts'

describe('the completion script of bash', async () => {
  const script = completionScript(await createProgram(), 'bash')

  /** What bash offers for the last word of a line. */
  const offered = (line: string): string[] => {
    const words = line.split(' ').map((word) => `'${word}'`)
    const run = `COMP_WORDS=(${words.join(' ')}); COMP_CWORD=${words.length - 1}; _mayfly; echo "\${COMPREPLY[*]}"`
    const out = execFileSync('bash', ['-uc', `${script}\n${run}`], { encoding: 'utf8' })
    return out.split(/\s+/).filter((word) => word !== '')
  }

  test('bash completion offers the commands of the place that the cursor is at', () => {
    assert.deepEqual(offered('mayfly ca'), ['catalog', 'catch'])
    assert.deepEqual(offered('mayfly buy '), ['catch', 'whisper', 'pulse'])
    assert.deepEqual(offered('mayfly order re'), ['repair', 'refunded', 'restore'])
    assert.deepEqual(offered('mayfly gate project r'), ['resume', 'rotate-key'])
  })

  test('bash completion passes over options and their values', () => {
    assert.deepEqual(offered('mayfly --url http://x --json catch li'), ['listen'])
    assert.deepEqual(offered('mayfly catch listen hooks --fo'), ['--forward'])
    assert.deepEqual(offered('mayfly buy pulse --name mine --pl'), ['--plan'])
  })

  test('bash completion leaves files to bash: for arguments, values of options and the job of pulse run', () => {
    for (const line of [
      'mayfly whisper send ',
      'mayfly backup ',
      'mayfly import --name x --url ',
      'mayfly pulse run backup -- ',
    ]) {
      assert.deepEqual(offered(line), [], line)
    }
  })
})

test('each completion script has every command and option', async () => {
  const program = await createProgram()
  for (const shell of ['bash', 'zsh', 'fish']) {
    const script = completionScript(program, shell)
    for (const command of commandsOf(program)) {
      assert.ok(script.includes(` ${command.name()}`), `${shell}: ${command.name()}`)
      for (const { long } of command.options) {
        const shown = shell === 'fish' ? `-l ${long?.slice(2)}` : String(long)
        assert.ok(script.includes(shown), `${shell}: ${long}`)
      }
    }
  }
})

test('completion prints its script, and knows three shells', async () => {
  const { code, out } = await runCommand(['completion', 'bash'])
  assert.deepEqual([code, out], [0, completionScript(await createProgram(), 'bash')])
  const other = await runCommand(['completion', 'csh', '--json'])
  assert.equal(other.code, 2)
  assert.deepEqual(JSON.parse(other.out), {
    error: 'A completion script is for bash, zsh or fish.',
  })
})
