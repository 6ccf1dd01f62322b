import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { test } from 'node:test'
import { until } from '../until.ts'

test('a test process that is killed takes its nodes and their folder with it', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'mayfly-keeper-'))
  // A stand-in for a node. It runs for ever, and its command line contains the folder.
  const script = `
    import { readFileSync } from 'node:fs'
    import { createProcesses } from '${join(import.meta.dirname, 'processes.ts')}'
    const processes = createProcesses('${folder}')
    const node = ['-e', 'console.log(process.pid); setInterval(() => {}, 1000)', '${folder}']
    processes.launch(process.execPath, node, '${folder}/log')
    setInterval(() => {
      const log = readFileSync('${folder}/log', 'utf8').trim()
      if (log) console.log(log)
    }, 20)
  `
  const parent = spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const pid = await new Promise<number>((resolve) => {
    createInterface({ input: parent.stdout }).once('line', (line) => resolve(Number(line)))
  })
  assert.ok(isAlive(pid))
  parent.kill('SIGKILL')
  await until('the node to end', () => !isAlive(pid))
  await until('its folder to go', () => !existsSync(folder))
})

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}
