import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { test } from 'node:test'
import { BIN, ENVIRONMENT } from '../../support/bin.ts'
import { poll, purchase, quoteOf } from '../../support/buying.ts'
import { runCommand } from '../../support/command.ts'
import { startServer, type TestServer } from '../../support/server.ts'
import { query } from '../../support/store.ts'
import { until } from '../../support/until.ts'

const settings = (server: TestServer) => ({ MAYFLY_DATABASE_URL: `sqlite:${server.file}` })
const mayfly = (server: TestServer, ...args: string[]) => runCommand(args, settings(server))

async function bought(server: TestServer) {
  const quote = quoteOf(await purchase(server, {}))
  await server.pay(quote.bolt11)
  await until('the delivery', async () => (await poll(server, quote.orderId)).status === 200)
  return quote
}

test('sales are exported as CSV and as JSON lines beside the service, and hold nothing of the buyer', async (t) => {
  const server = await startServer(t)
  const { paymentHash, orderId } = await bought(server)
  const csv = await mayfly(server, 'sales', 'export')
  assert.deepEqual([csv.code, csv.err], [0, ''])
  const [head, line, end] = csv.out.split('\r\n')
  assert.equal(head, '"time","product","plan","sats","paymentHash","network","refundReason"')
  assert.match(
    line ?? '',
    new RegExp(`^"2\\d{3}-[^"]+Z","catch","spark",\\d+,"${paymentHash}","regtest",""$`),
  )
  assert.equal(end, '')
  const json = await mayfly(server, 'sales', 'export', '--json')
  const sale = JSON.parse(json.out)
  assert.deepEqual(Object.keys(sale), [
    ...['time', 'product', 'plan', 'sats', 'paymentHash', 'network', 'refundReason'],
  ])
  assert.ok(!(csv.out + json.out).includes(orderId))
})

test('--from and --to choose the time: a date includes its whole day', async (t) => {
  const server = await startServer(t)
  const { paymentHash } = await bought(server)
  await query(server, 'update sale set settled_at = $1', Date.parse('2026-01-31T23:59:59.999Z'))
  const isIn = async (...args: string[]) => {
    const { code, out, err } = await mayfly(server, 'sales', 'export', ...args)
    assert.equal(code, 0, err)
    return out.includes(paymentHash)
  }
  assert.ok(await isIn('--from', '2026-01-31', '--to', '2026-01-31'))
  assert.ok(!(await isIn('--from', '2026-01-01', '--to', '2026-01-30')))
  assert.ok(!(await isIn('--from', '2026-02-01')))
  assert.ok(!(await isIn('--to', '2026-01-31T23:59:59Z')))
  for (const args of [
    ['--from', 'yesterday'],
    ['--from', '2026-02-30'],
    ['--to', '2026-01-31T10:00:00'],
    ['--from', '2026-02-01', '--to', '2026-01-01'],
  ]) {
    const { code, out } = await mayfly(server, 'sales', 'export', ...args)
    assert.deepEqual([code, out], [2, ''], args.join(' '))
  }
})

test('no text in the CSV is a formula to a spreadsheet', async (t) => {
  const server = await startServer(t)
  const evil = ['=cmd()', '+1', '-1', '@x', '\t=1', '\r=1']
  for (const [i, text] of evil.entries()) {
    await query(
      server,
      `insert into sale (payment_hash, settled_at, product, plan_id, amount_sats, network)
        values ($1, 1, $2, 'a"b', 1, 'mainnet')`,
      `hash ${i}`,
      text,
    )
  }
  const { out } = await mayfly(server, 'sales', 'export')
  for (const text of evil) assert.ok(out.includes(`,"'${text}","a""b",`), JSON.stringify(text))
})

test('a reader who stops early ends a long export, which is not in memory', async (t) => {
  const server = await startServer(t)
  await query(
    server,
    `insert into sale (payment_hash, settled_at, product, plan_id, amount_sats, network)
      with recursive n(i) as (select 1 union all select i + 1 from n where i < 50000)
      select 'hash ' || i, i, 'catch', 'spark', 1, 'mainnet' from n`,
  )
  const child = spawn(process.execPath, [BIN, 'sales', 'export'], {
    env: { ...ENVIRONMENT, ...settings(server) },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  await once(child.stdout, 'data')
  child.stdout.destroy()
  const [code] = await once(child, 'close')
  assert.equal(code, 0)
  const { out } = await mayfly(server, 'sales', 'export', '--json')
  assert.equal(out.split('\n').length, 50_001)
})
