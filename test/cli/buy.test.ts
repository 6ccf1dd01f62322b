import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { findPurchase, openPurchase, vaultStore } from '../../src/cli/vault/purchases.ts'
import type { PurchaseRecord } from '../../src/client/index.ts'
import { containsToken } from '../../src/lib/ids.ts'
import { decodeInvoice } from '../../src/protocol/bolt11.ts'
import { type CommandLine, commandLine, WITH_WALLET } from '../support/command-line.ts'
import type { After } from '../support/folder.ts'
import { anInvoice } from '../support/invoice.ts'
import { startServer } from '../support/server.ts'
import { answerWith, between, passOn, serve } from '../support/serving.ts'
import { until } from '../support/until.ts'
import { aUser, interrupted, invoiceOf, statesOf } from '../support/user.ts'
import { inVaultOf } from '../support/vault.ts'

describe('a purchase', () => {
  test('a purchase is paid from a wallet, and saved by name for the user alone', async (t) => {
    const { cli, url } = await aUser(t)
    const bought = await cli.run(['buy', 'catch', '--name', 'hooks'], WITH_WALLET)
    assert.equal(bought.code, 0, bought.err)
    assert.equal(containsToken(bought.out + bought.err), false)
    const { publicId, ingestUrl, planId } = JSON.parse(bought.out) as Record<string, string>
    assert.equal(ingestUrl, `${url}/c/${publicId}`)
    assert.equal(planId, 'spark')
    for (const entry of readdirSync(cli.folder, { recursive: true, encoding: 'utf8' })) {
      const found = statSync(join(cli.folder, entry))
      assert.equal(found.mode & 0o777, found.isDirectory() ? 0o700 : 0o600, entry)
    }
    assert.equal(readdirSync(cli.folder).includes('vault.db'), true)

    const listed = await cli.run(['list'])
    const shown = await cli.run(['show', 'hooks'])
    assert.equal(containsToken(listed.out + shown.out), false)
    assert.deepEqual(await statesOf(cli), ['hooks saved'])
    const revealed = await cli.json(['show', 'hooks', '--reveal'])
    assert.match(String(revealed.ownerToken), /^catch_owner_/)
    const status = await cli.json(['status', 'hooks'])
    assert.deepEqual([status.publicId, status.ingestUrl], [publicId, ingestUrl])
    assert.equal(revealed.ingestUrl, ingestUrl)
  })

  test('a purchase that was killed is taken up by the same command, with the same invoice', async (t) => {
    const { cli, pay } = await aUser(t)
    const buy = ['buy', 'catch', '--name', 'hooks']
    const first = cli.start(buy)
    const invoice = await invoiceOf(first)
    for (const args of [buy, ['forget', 'hooks']]) {
      const other = await cli.run(args)
      assert.equal(other.code, 1)
      assert.match(other.err, new RegExp(`Process ${first.child.pid} is buying hooks`))
    }
    first.child.kill('SIGKILL')
    await first.ended
    assert.deepEqual(await statesOf(cli), ['hooks buying'])

    const second = cli.start(buy)
    assert.equal(await invoiceOf(second), invoice)
    second.child.kill('SIGINT')
    const { code, err } = await second.ended
    assert.equal(code, 130)
    assert.match(err, /Interrupted\. To continue: mayfly buy catch --resume hooks\n$/)

    await pay(invoice)
    const third = await cli.run(['buy', 'catch', '--resume', 'hooks'])
    assert.equal(third.code, 0, third.err)
    assert.match(third.err, /Continuing the purchase hooks/)
    const fourth = await cli.run(['buy', 'catch', '--resume', 'hooks'])
    assert.match(fourth.err, /^hooks is bought and saved: `mayfly show hooks` shows it\.\n$/)
    assert.equal((await cli.json(['status', 'hooks'])).status, 'active')
    assert.equal((await cli.run(buy)).err.includes('A capability named hooks already exists'), true)
  })

  test('a purchase above the ceiling is refused before anything is paid', async (t) => {
    const { cli, server } = await aUser(t)
    const { code, err, out } = await cli.run(
      ['buy', 'catch', '--max-sats', '99', '--json'],
      WITH_WALLET,
    )
    assert.equal(code, 3)
    assert.match(err, /price of 100 sat is above the ceiling of 99 sat, and nothing was paid/)
    assert.match(err, /To pay it, add --max-sats 100 or set MAYFLY_MAX_SATS\./)
    assert.deepEqual(JSON.parse(out), { error: err.trim() })
    assert.equal(
      server.logged.some((line) => line.includes('settled')),
      false,
    )
    assert.deepEqual(await cli.json(['list']), [])
  })

  test('a purchase that was paid keeps its key and its proof, whatever the service says of it then', async (t) => {
    const server = await startServer(t)
    let said: readonly [status: number, body: object] | null = null
    const proofs: unknown[] = []
    const refusing = await between(t, server.url, (_path, response, { headers }) => {
      const proof = headers['payment-preimage']
      proofs.push(proof)
      if (said === null || proof === undefined) return false
      response.writeHead(said[0], { 'content-type': 'application/json' })
      response.end(JSON.stringify(said[1]))
      return true
    })
    const cli = await commandLine(t, refusing)
    const buy = (name: string) => cli.run(['buy', 'catch', '--name', name], WITH_WALLET)
    const later = { product: 'catch', publicId: 'of a later version' }
    for (const [name, answer] of Object.entries({
      refused: [400, { error: 'invalid request body' }],
      ended: [410, { error: 'order expired' }],
      'not-saved': [200, { settled: true, resource: later }],
    } as const)) {
      said = answer
      const refused = await buy(name)
      assert.notEqual(refused.code, 0, name)
      const { preimage } = openPurchase(cli, name) ?? {}
      assert.match(String(preimage), /^[0-9a-f]{64}$/, name)
      const listed = await cli.run(['list', '--json'])
      assert.equal((refused.out + refused.err + listed.out).includes(String(preimage)), false)
      said = null
      proofs.length = 0
      const again = await buy(name)
      assert.equal(again.code, 0, again.err)
      assert.match(again.err, new RegExp(`Continuing the purchase ${name}`))
      assert.equal(proofs[0], preimage)
      assert.equal((again.out + again.err).includes(String(preimage)), false)
      assert.equal(openPurchase(cli, name), null)
    }
  })

  test('a purchase that the wallet refused goes when both clocks are ten minutes past its expiry', async (t) => {
    let date = Date.now() - 3_600_000
    const url = await serve(t, (_incoming, response) => {
      response.writeHead(404, { date: new Date(date).toUTCString() })
      response.end(JSON.stringify({ error: 'order not found' }))
    })
    const cli = await commandLine(t, url)
    const timestamp = Math.floor(Date.now() / 1000) - 4 * 3600
    const paymentHash = 'ab'.repeat(32)
    const bolt11 = anInvoice({ paymentHash, amountMsat: 100_000, timestamp })
    const place = { folder: cli.folder, now: Date.now, maxSatsPerDay: 2000 }
    const store = vaultStore(place, { nameFor: () => 'hooks', onDelivered: () => undefined })
    const expiresAt = new Date(decodeInvoice(bolt11).expiresAt).toISOString()
    date = Date.parse(expiresAt) - 60_000
    const record = {
      version: 1,
      revision: 1,
      idempotencyKey: 'a key',
      state: 'failed',
      service: url,
      product: 'catch',
      planId: 'spark',
      requestSha256: '',
      maxSats: 1000,
      wallet: 'the simulator',
      invoices: [{ bolt11, paymentHash, amountSats: 100, expiresAt, orderId: 'order_1' }],
    } as unknown as PurchaseRecord
    store.save(record)
    const resume = () => cli.run(['buy', 'catch', '--resume', 'hooks'], WITH_WALLET)
    // Our clock may be ahead.
    const early = await resume()
    assert.match(early.err, /is not paid, and the service says: order not found/)
    const kept = findPurchase(cli, 'hooks')
    assert.deepEqual([kept?.record.state, kept?.isMine], ['failed', false], 'nobody is at it now')
    date = Date.now()
    assert.equal((await resume()).code, 3)
    assert.equal(openPurchase(cli, 'hooks'), null)
  })

  test('a purchase from a service that is away leaves nothing', async (t) => {
    const cli = await commandLine(t, 'http://127.0.0.1:9')
    assert.equal((await cli.run(['buy', 'catch'], WITH_WALLET)).code, 5)
    assert.deepEqual(await cli.json(['list']), [])
    const sent = await cli.run(['whisper', 'send'], { ...WITH_WALLET, input: 'piped' })
    assert.equal(sent.code, 5)
    assert.match(sent.err, /does not answer/)
    assert.deepEqual(await cli.json(['list']), [])
  })

  test('a purchase gets the first free name, and never one that is taken', async (t) => {
    const { cli } = await aUser(t)
    assert.equal((await cli.json(['buy', 'pulse'], WITH_WALLET)).name, 'pulse-1')
    assert.equal((await cli.json(['buy', 'pulse'], WITH_WALLET)).name, 'pulse-2')
    for (const name of ['../x', 'A', '', 'a'.repeat(64), '.hidden']) {
      assert.equal((await cli.run(['buy', 'pulse', '--name', name], WITH_WALLET)).code, 2, name)
    }
  })
})

describe('pay', () => {
  test('pay pays the invoice that a purchase shows where there is no wallet, unless it is above the ceiling or there is none here either', async (t) => {
    const { cli } = await aUser(t)
    const running = cli.start(['buy', 'catch', '--name', 'hooks'])
    const invoice = await invoiceOf(running)
    const noWallet = await cli.run(['pay', invoice])
    assert.equal(noWallet.code, 2)
    assert.match(noWallet.err, /Set MAYFLY_WALLET_URL/)
    const tooDear = await cli.run(['pay', invoice, '--max-sats', '99'], WITH_WALLET)
    assert.equal(tooDear.code, 3)
    assert.match(tooDear.err, /price of 100 sat is above the ceiling of 99/)
    const paid = await cli.json(['pay', `lightning:${invoice}`, '--show-preimage'], WITH_WALLET)
    const preimage = Buffer.from(String(paid.preimage), 'hex')
    assert.equal(createHash('sha256').update(preimage).digest('hex'), paid.paymentHash)
    const { code, out } = await running.ended
    assert.deepEqual([code, JSON.parse(out.split('\n')[1] ?? '').name], [0, 'hooks'])
    assert.equal((await cli.json(['status', 'hooks'])).status, 'active')
    assert.equal((await cli.run(['pay', 'lnbc1nonsense'], WITH_WALLET)).code, 2)
  })

  test('two invoices with one payment hash are two payments, each with its own name', async (t) => {
    const { cli } = await aUser(t)
    const invoice = (sats: number) =>
      anInvoice({ paymentHash: 'ab'.repeat(32), amountMsat: sats * 1000 })
    for (const bolt11 of [invoice(100), invoice(101)]) {
      const { code, err } = await cli.run(['pay', bolt11], WITH_WALLET)
      assert.deepEqual([code, /^The wallet did not pay/.test(err)], [3, true], err)
    }
    const listed = (await cli.json(['list'])) as unknown as { name: string; amountSats: number }[]
    assert.deepEqual(listed.map(({ amountSats }) => amountSats).sort(), [100, 101])
    assert.equal(new Set(listed.map(({ name }) => name)).size, 2)
  })
})

/** Sends a whisper, `w`, of one read. */
const sendOnce = (cli: CommandLine, ...options: string[]) =>
  cli.json(['whisper', 'send', '--reads', '1', '--name', 'w', ...options], {
    ...WITH_WALLET,
    input: 'once',
  })

/** One that opens with a password, read with the right one or a wrong one. */
async function aLocked(t: After) {
  const { cli } = await aUser(t)
  const file = (which: string) => join(cli.folder, '..', which)
  for (const which of ['right', 'wrong']) writeFileSync(file(which), `${which}\n`)
  await sendOnce(cli, '--password-file', file('right'))
  const read = (which: 'right' | 'wrong') =>
    cli.run(['whisper', 'read', 'w', '--password-file', file(which)])
  return { cli, read }
}

describe('a whisper', () => {
  test('a whisper arrives byte for byte, and its reads are counted', async (t) => {
    const { cli, url } = await aUser(t)
    const input = randomBytes(5000)
    const sent = await cli.json(['whisper', 'send', '--reads', '2', '--name', 'w'], {
      ...WITH_WALLET,
      input,
    })
    const code = String(sent.code)
    assert.equal((await fetch(String(sent.readUrl))).status, 200)
    assert.equal(sent.readUrl, `${url}/read`, 'without the code')
    const [, ...command] = String(sent.readCommand).split(' ')
    const elsewhere = { MAYFLY_URL: 'http://127.0.0.1:1' }
    const piped = await cli.run(command, { input: `${code}\n`, environment: elsewhere })
    assert.deepEqual(piped.bytes, input)

    const out = join(cli.folder, 'out.bin')
    writeFileSync(out, 'mine')
    const refused = await cli.run(['whisper', 'read', code, '--out', out])
    assert.equal(refused.code, 1)
    assert.match(refused.err, /already exists and is never overwritten\. Nothing was spent/)
    const fresh = join(cli.folder, 'fresh.bin')
    assert.equal((await cli.run(['whisper', 'read', 'w', '--out', fresh])).code, 0)
    assert.deepEqual(readFileSync(fresh), input)
    assert.equal(statSync(fresh).mode & 0o777, 0o600)

    const third = join(cli.folder, 'third.bin')
    const spent = await cli.run(['whisper', 'read', 'w', '--out', third])
    assert.equal(spent.code, 4)
    assert.throws(() => statSync(third))
  })

  test('a whisper of a file has its name, or the nearest that an envelope takes, and needs its password', async (t) => {
    const { cli } = await aUser(t)
    const [secret, password] = [
      join(cli.folder, '..', 'plan\\b\n.txt'),
      join(cli.folder, '..', 'pw'),
    ]
    writeFileSync(secret, 'at noon\u001b[2J')
    writeFileSync(password, 'hunter2\n')
    const { code } = await cli.json(
      ['buy', 'whisper', secret, '--password-file', password],
      WITH_WALLET,
    )
    const without = await cli.run(['whisper', 'read', String(code)])
    assert.equal(without.code, 2)
    assert.match(without.err, /no terminal to type a password on/)
    const read = await cli.json([
      'whisper',
      'read',
      String(code),
      '--json',
      '--password-file',
      password,
    ])
    assert.deepEqual(read, {
      name: 'plan_b_.txt',
      mediaType: null,
      bytes: 11,
      data: 'at noon\u001b[2J',
      encoding: 'utf8',
    })
  })

  test('a whisper that does not open with a password is saved until it does, for one read', async (t) => {
    const { cli, read } = await aLocked(t)
    for (const says of [/^The whisper does not open/, /^Opening the content of an earlier read/]) {
      const refused = await read('wrong')
      assert.match(refused.err, says)
      assert.match(refused.err, /its content is kept\. Run the same command to try again/)
      assert.deepEqual([refused.code, refused.out], [1, ''])
    }
    const unopened = () => inVaultOf(cli.folder, 'select public_id from unopened')
    assert.equal(unopened().length, 1)
    assert.equal((await read('right')).out, 'once')
    assert.deepEqual(unopened(), [])
    assert.equal((await read('right')).code, 4)
  })

  test('what a read brought is given up by the command that the refusal names', async (t) => {
    const { cli, read } = await aLocked(t)
    const refused = await read('wrong')
    const [, id = ''] = /To give it up: mayfly forget (\S+)\n/.exec(refused.err) ?? []
    const asked = await cli.run(['forget', id])
    assert.equal(asked.code, 2)
    assert.match(asked.err, /the only copy of what a spent read brought.*--yes/s)
    assert.equal((await cli.run(['forget', id, '--yes'])).code, 0)
    assert.deepEqual(inVaultOf(cli.folder, 'select public_id from unopened'), [])
    assert.equal((await cli.run(['forget', id, '--yes'])).code, 4)
    assert.equal((await cli.run(['forget', 'catch_0000000000000000000000'])).code, 2)
  })

  test('a whisper that could not be written is saved, for one read', async (t) => {
    const { cli } = await aUser(t)
    await sendOnce(cli)
    const { code } = await cli.withoutStdout(['whisper', 'read', 'w'])
    assert.equal(code, 1)
    assert.equal((await cli.run(['whisper', 'read', 'w'])).out, 'once')
    assert.equal((await cli.run(['whisper', 'read', 'w'])).code, 4)
  })

  test('a whisper is not read where its content could not be saved', async (t) => {
    const { cli } = await aUser(t)
    await sendOnce(cli)
    inVaultOf(
      cli.folder,
      `create trigger full before insert on unopened begin select raise(fail, 'database or disk is full'); end`,
    )
    const refused = await cli.run(['whisper', 'read', 'w'])
    assert.match(refused.err, /^The content could not be kept\. .* Nothing was spent\.$/m)
    assert.deepEqual([refused.code, refused.out], [1, ''])
    inVaultOf(cli.folder, 'drop trigger full')
    assert.equal((await cli.run(['whisper', 'read', 'w'])).out, 'once')
  })

  test('a whisper cannot be read before its time, and no read is spent', async (t) => {
    const { cli, server } = await aUser(t)
    const at = new Date(Date.now() + 3_600_000).toISOString()
    await sendOnce(cli, '--reveal-at', at)
    const early = await cli.run(['whisper', 'read', 'w'])
    assert.equal(early.code, 1)
    assert.match(
      early.err,
      /not revealed yet: it opens in \d+ min at the earliest\. No read was spent/,
    )
    server.clock.advance(3_600_000)
    assert.equal((await cli.run(['whisper', 'read', 'w'])).out, 'once')
  })

  test('a whisper that was killed while it was paid is taken up with the same bytes', async (t) => {
    const { cli, pay } = await aUser(t)
    await pay(await interrupted(cli, ['whisper', 'send', '--name', 'w'], { input: 'secret' }))
    const again = await cli.run(['whisper', 'send', '--name', 'w'], { input: 'secret' })
    assert.match(again.err, /To continue it: mayfly whisper send --resume w/)
    const shown = await cli.run(['show', 'w'])
    assert.match(shown.err, /not finished\. To continue: mayfly whisper send --resume w/)
    const { code } = await cli.json(['whisper', 'send', '--resume', 'w'])
    assert.equal((await cli.run(['whisper', 'read', String(code)])).out, 'secret')
  })
})

test('of two purchases that begin under one name, one pays', async (t) => {
  const { url } = await startServer(t)
  let release = (): void => undefined
  const isReleased = new Promise<void>((resolve) => {
    release = resolve
  })
  let held = 0
  const through = await serve(t, async (incoming, response) => {
    if (incoming.url === '/api/payments/catch' && held++ === 0) await isReleased
    answerWith(response, await passOn(url, incoming))
  })
  const cli = await commandLine(t, through)
  const buy = ['buy', 'catch', '--name', 'hooks']
  const late = cli.start(buy, WITH_WALLET)
  await until('its quote is held back', () => held === 1)
  await cli.json(buy, WITH_WALLET)
  release()
  const { code, err } = await late.ended
  assert.equal(code, 1)
  assert.match(err, /A capability named hooks already exists/)
  assert.equal((await cli.json(['budget'])).spentMsat, 100_000)
  assert.deepEqual(await statesOf(cli), ['hooks saved'])
})

test('what was paid for is saved under another name, if its own was taken meanwhile', async (t) => {
  const { cli, server } = await aUser(t, { other: 'catch' })
  const invoice = await interrupted(cli, ['buy', 'catch', '--name', 'hooks'])
  const { out: file } = await cli.run(['export', 'other'])
  await cli.json(['import', '-', '--name', 'hooks'], { input: file })
  await server.pay(invoice)
  assert.equal((await cli.json(['buy', 'catch', '--resume', 'hooks'])).name, 'hooks-2')
  assert.deepEqual(await statesOf(cli), ['hooks saved', 'hooks-2 saved', 'other saved'])
})

test('a purchase whose shown invoice has just expired is kept while its service says that it is pending', async (t) => {
  const { cli, server } = await aUser(t)
  const invoice = await interrupted(cli, ['buy', 'catch', '--name', 'hooks'])
  // By the clock of this machine it is over. A payment by hand may be on its way.
  const [row] = inVaultOf(cli.folder, 'select record from purchase')
  const record = JSON.parse(String(row?.record))
  const timestamp = Math.floor(Date.now() / 1000) - 1_000
  const { paymentHash } = record.invoices[0]
  const bolt11 = anInvoice({ paymentHash, amountMsat: 100_000, timestamp })
  const expiresAt = new Date((timestamp + 900) * 1000).toISOString()
  Object.assign(record.invoices[0], { bolt11, expiresAt })
  inVaultOf(cli.folder, 'update purchase set record = ?', JSON.stringify(record))
  const late = await cli.run(['buy', 'catch', '--resume', 'hooks'])
  assert.equal(late.code, 3)
  assert.match(late.err, /The invoice has expired.*mayfly buy catch --resume hooks/)
  await server.pay(invoice)
  await cli.json(['buy', 'catch', '--resume', 'hooks'])
})
