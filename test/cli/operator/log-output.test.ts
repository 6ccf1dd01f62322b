import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { createLogOutput } from '../../../src/cli/operator/log-output.ts'
import { BIN, ENVIRONMENT } from '../../support/bin.ts'
import { temporaryFolder } from '../../support/folder.ts'
import { freePort } from '../../support/ports.ts'
import { settingsFor } from '../../support/store.ts'
import { until } from '../../support/until.ts'

const fault = (code: string) => Object.assign(new Error(code), { code })

/** A file that takes what its answers say: all, some bytes, or nothing and an error. */
function aFile(answers: (number | string)[] = []) {
  const taken: string[] = []
  function writeSync(bytes: Buffer): number {
    const answer = answers.shift() ?? bytes.length
    if (typeof answer === 'string') throw fault(answer)
    taken.push(bytes.toString('utf8', 0, answer))
    return answer
  }
  return {
    taken,
    writeSync,
    write(bytes: Buffer, done: (error: Error | null, written: number) => void) {
      setImmediate(() => {
        try {
          done(null, writeSync(bytes))
        } catch (error) {
          done(error as Error, 0)
        }
      })
    },
  }
}

/** Until what was written has been answered. */
async function settled(): Promise<void> {
  for (let i = 0; i < 10; i++) await turn()
}

test('the lines of one turn are one write, in their order', async () => {
  const file = aFile()
  const log = createLogOutput(file)
  log.write('a\n')
  await Promise.resolve()
  log.write('b\n')
  assert.deepEqual(file.taken, [])
  await settled()
  log.write('c\n')
  await settled()
  assert.deepEqual(file.taken, ['a\nb\n', 'c\n'])
})

test('the lines left at the end are written once', async () => {
  const file = aFile()
  const log = createLogOutput(file)
  log.write('the last words\n')
  log.flush()
  log.flush()
  await settled()
  assert.deepEqual(file.taken, ['the last words\n'])
})

test('lines on a full disk are lost, and those after it has room are written', async () => {
  const file = aFile(['ENOSPC'])
  const log = createLogOutput(file)
  log.write('lost\n')
  await settled()
  log.write('kept\n')
  await settled()
  assert.deepEqual(file.taken, ['kept\n'])
})

test('the end does not wait for a full disk', () => {
  const file = aFile(['ENOSPC'])
  const log = createLogOutput(file)
  log.write('lost\n')
  log.flush()
  assert.deepEqual(file.taken, [])
})

test('a full pipe gets the rest later, also at the end', async () => {
  const file = aFile([2, 'EAGAIN'])
  const log = createLogOutput(file)
  log.write('abcd\n')
  await until('the rest is written', () => file.taken.length === 2)
  const atEnd = aFile([2, 'EAGAIN'])
  const ending = createLogOutput(atEnd)
  ending.write('abcd\n')
  ending.flush()
  assert.deepEqual(
    [file.taken, atEnd.taken],
    [
      ['ab', 'cd\n'],
      ['ab', 'cd\n'],
    ],
  )
})

test('what waits for room in a pipe is written at the end', async () => {
  const file = aFile(['EAGAIN'])
  const log = createLogOutput(file)
  log.write('a\n')
  await settled()
  log.write('b\n')
  log.flush()
  assert.deepEqual(file.taken, ['a\nb\n'])
})

test('a reader that takes nothing does not fill the memory', () => {
  let kept = 0
  const writeSync = (bytes: Buffer): number => {
    kept += bytes.length
    return bytes.length
  }
  const log = createLogOutput({ write: () => undefined, writeSync })
  const line = `${'x'.repeat(1023)}\n`
  for (let i = 0; i < 100_000; i++) log.write(line)
  log.flush()
  assert.equal(kept, 8 * 1024 * 1024)
})

test('a service whose log and sentences nobody can write starts, serves, and stops', async (t) => {
  // Every write to a file that is open for reading alone fails, as on a full disk.
  const unwritable = await open(import.meta.filename)
  t.after(() => unwritable.close())
  const port = await freePort()
  const file = join(await temporaryFolder(t), 'mayfly.db')
  const service = spawn(process.execPath, [BIN, 'serve'], {
    env: { ...ENVIRONMENT, ...settingsFor(`sqlite:${file}`), MAYFLY_PORT: String(port) },
    stdio: ['ignore', unwritable.fd, unwritable.fd],
  })
  t.after(() => service.kill('SIGKILL'))
  await until('it serves', async () => {
    assert.equal(service.exitCode, null)
    const answer = await fetch(`http://127.0.0.1:${port}/ready`).catch(() => null)
    return answer?.status === 200
  })
  service.kill('SIGTERM')
  assert.deepEqual(await once(service, 'exit'), [0, null])
})
