/** Starts of the real program under the right secret, a lost one and another one. */
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { runCommand } from '../support/command.ts'
import { commandLine } from '../support/command-line.ts'
import { temporaryFolder } from '../support/folder.ts'
import { refusedStart, startProgram } from '../support/program.ts'
import { until } from '../support/until.ts'

const SECRET = '5e'.repeat(32)

suite('the secret beside the database', () => {
  test('a lost secret is never made anew beside a store with orders, and doctor says so', async (t) => {
    const file = join(await temporaryFolder(t), 'mayfly.db')
    const kept = file.replace(/\.db$/, '.secret')
    const first = await startProgram(t, file)
    const { orderId: id, bolt11 } = await quote(first.url)
    await first.pay(bolt11)
    await first.saw('order.settled')
    await first.kill()
    await rename(kept, `${kept}.away`)

    const lost = new RegExp(
      `^Mayfly did not start\\. ${kept} is missing, and ${file} has orders that were made under it\\. Restore it`,
    )
    for (let starts = 0; starts < 2; starts++) {
      const refused = await refusedStart(t, file)
      assert.match(refused.told, lost)
      assert.equal(refused.code, 2)
      assert.equal(existsSync(kept), false)
    }
    const doctor = async () =>
      runCommand(['doctor', '--json'], { MAYFLY_DATABASE_URL: `sqlite:${file}` })
    const told = await doctor()
    assert.equal(told.code, 1)
    assert.deepEqual(
      (JSON.parse(told.out) as { check: string; state: string }[])
        .filter(({ state }) => state === 'bad')
        .map(({ check }) => check),
      ['secret'],
    )

    await rename(`${kept}.away`, kept)
    assert.match((await doctor()).out, /"check":"secret","state":"ok"/)
    const again = await startProgram(t, file)
    assert.equal((await fetch(`${again.url}/api/payments/${id}`)).status, 200)
  })

  test('the secret of another store is named by its file, and by no setting that was never set', async (t) => {
    const file = join(await temporaryFolder(t), 'mayfly.db')
    const kept = file.replace(/\.db$/, '.secret')
    const first = await startProgram(t, file)
    await quote(first.url)
    await first.kill()
    await writeFile(kept, SECRET)
    const { told } = await refusedStart(t, file)
    assert.match(
      told,
      new RegExp(`The secret in ${kept} is not the one that 1 open or uncollected`),
    )
    assert.doesNotMatch(told, /MAYFLY_SECRET/)
  })

  test('a secret is made where the store has no orders, however often it is lost', async (t) => {
    const file = join(await temporaryFolder(t), 'mayfly.db')
    const kept = file.replace(/\.db$/, '.secret')
    const first = await startProgram(t, file)
    await first.kill()
    await rm(kept)
    const again = await startProgram(t, file)
    assert.match(await readFile(kept, 'utf8'), /^[0-9a-f]{64}\n$/)
    await again.kill()
  })

  test('a secret that cannot be read stops the start with a sentence about it', async (t) => {
    const file = join(await temporaryFolder(t), 'mayfly.db')
    const kept = file.replace(/\.db$/, '.secret')
    // A folder in its place: it cannot be read, by root neither.
    await mkdir(kept)
    const { code, told } = await refusedStart(t, file)
    assert.match(
      told,
      /^Mayfly did not start\. \S+mayfly\.secret cannot be read or created: [^\n]+\n$/,
    )
    assert.equal(code, 2)
  })

  test('one of two starts at once runs, and makes the secret that later starts have', async (t) => {
    const file = join(await temporaryFolder(t), 'mayfly.db')
    const cli = await commandLine(t, 'http://127.0.0.1:9')
    const environment = { MAYFLY_PORT: '0', MAYFLY_DATABASE_URL: `sqlite:${file}` }
    const starts = [0, 1].map(() => cli.start(['serve'], { environment }))
    const { err } = await Promise.race(starts.map(({ ended }) => ended))
    assert.match(err, /runs on .* already/)
    const running = starts.find(({ child }) => child.exitCode === null)
    assert.ok(running)
    const url = await until(
      'the other one listens',
      () => /"listening","url":"([^"]*)"/.exec(running.out())?.[1],
    )
    assert.match(await readFile(file.replace(/\.db$/, '.secret'), 'utf8'), /^[0-9a-f]{64}\n$/)
    const order = await orderId(url)
    running.child.kill('SIGKILL')
    await running.ended
    // The same key reaches the same order: it is derived from the one secret.
    assert.equal(await orderId((await startProgram(t, file)).url), order)
  })
})

const KEY = '0f6b2c4e-8a1d-4e7b-9c3f-5d2a1b0c9e8f'

async function quote(url: string): Promise<{ orderId: string; bolt11: string }> {
  const response = await fetch(`${url}/api/payments/catch`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'idempotency-key': KEY },
    body: JSON.stringify({ planId: 'spark' }),
  })
  assert.equal(response.status, 402)
  return (await response.json()) as { orderId: string; bolt11: string }
}

const orderId = async (url: string): Promise<string> => (await quote(url)).orderId
