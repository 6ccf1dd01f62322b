/** Every tool, driven by the official clients of both revisions. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { suite, test } from 'node:test'
import type { CatchCapability, PulseCapability, WhisperCapability } from '../../src/client/index.ts'
import { containsToken } from '../../src/lib/ids.ts'
import { TOOL_NAMES } from '../../src/mcp-tools/tools.ts'
import {
  type Agent,
  capabilityIn,
  challengeIn,
  connect,
  credentialOf,
  purchaseIn,
  REVISIONS,
  refusalIn,
} from '../support/mcp.ts'
import { shareServer } from '../support/shared-server.ts'

for (const revision of REVISIONS) {
  suite(`the tools at /mcp, for a client of ${revision}`, () => {
    const start = shareServer()

    async function agent(t: Parameters<typeof connect>[0]) {
      const server = await start()
      const { url, pay } = server
      const one = await connect(t, url, { revision })

      /** Buys with two calls, like a client that pays by itself. */
      async function buy<Capability>(name: string, given: object): Promise<Capability> {
        const asked = await one.call(name, given)
        const challenge = challengeIn(asked)
        const preimage = await pay(challenge.request.methodDetails.invoice)
        const { purchaseId } = purchaseIn(asked)
        const meta = credentialOf(challenge, preimage)
        const paid = await one.call(name, { ...given, purchaseId }, { meta })
        const receipt = paid._meta?.['org.paymentauth/receipt'] as Record<string, unknown>
        assert.equal(receipt.reference, purchaseIn(asked).quote.paymentHash)
        return capabilityIn(paid)
      }
      return { ...server, one, buy }
    }

    const seesNoToken = ({ seen }: Agent): void => {
      for (const text of seen) assert.ok(!containsToken(text), text)
    }

    test('the list has every tool, with its schemas', async (t) => {
      const { one } = await agent(t)
      const tools = await one.tools()
      assert.deepEqual(
        tools.map(({ name }) => name),
        TOOL_NAMES,
      )
      for (const { name, outputSchema } of tools) assert.ok(outputSchema, name)
    })

    test('an inbox is bought, waited for, read and destroyed', async (t) => {
      const { one, buy, url } = await agent(t)
      const catalog = await one.call('catalog')
      assert.equal(catalog.structuredContent?.checkoutEnabled, true)
      const inbox = await buy<CatchCapability>('buy_inbox', { planId: 'spark' })
      const { publicId, ownerToken: token } = inbox

      const waiting = one.call('wait_for_webhook', { publicId, after: 0 }, { token })
      await fetch(`${url}/c/${publicId}/paid?id=7`, { method: 'POST', body: '{"ok":true}' })
      const { structuredContent: waited } = await waiting
      assert.equal(waited?.reason, 'received')
      assert.equal(waited?.latestSequence, 1)

      const read = await one.call('read_inbox', { publicId, method: 'post' }, { token })
      const [webhook] = (read.structuredContent?.webhooks ?? []) as Record<string, unknown>[]
      assert.deepEqual(webhook?.body, {
        untrustedText: '{"ok":true}',
        bytes: 11,
        isCut: false,
      })
      assert.deepEqual(JSON.parse(read.content[0]?.text ?? ''), read.structuredContent)
      const none = await one.call('read_inbox', { publicId, method: 'PUT' }, { token })
      assert.deepEqual(none.structuredContent?.webhooks, [])

      const destroyed = await one.call('destroy', { publicId }, { token })
      assert.deepEqual(destroyed.structuredContent, {
        destroyed: true,
        product: 'catch',
        publicId,
      })
      assert.match(refusalIn(await one.call('read_inbox', { publicId }, { token })), /unauthorized/)
      seesNoToken(one)
    })

    test('a monitor is bought with check_order, pinged, looked at and destroyed', async (t) => {
      const { one, pay } = await agent(t)
      const { purchaseId, quote } = purchaseIn(await one.call('buy_monitor', { planId: 'spark' }))
      const unpaid = await one.call('check_order', { orderId: quote.orderId })
      assert.equal(unpaid.structuredContent?.state, 'payment required')
      await pay(quote.bolt11)
      const asked = { orderId: quote.orderId, purchaseId }
      const monitor = capabilityIn<PulseCapability>(await one.call('check_order', asked))
      assert.deepEqual(capabilityIn(await one.call('check_order', asked)), monitor)
      const { publicId, ownerToken, pingToken } = monitor

      for (const given of [{}, { signal: 'start' }, { exitCode: 0 }]) {
        const pinged = await one.call('ping', { publicId, ...given }, { token: pingToken })
        assert.deepEqual(pinged.structuredContent, { recorded: true })
      }
      const both = { publicId, signal: 'fail', exitCode: 1 }
      assert.match(refusalIn(await one.call('ping', both, { token: pingToken })), /either/)
      const status = await one.call('monitor_status', { publicId }, { token: ownerToken })
      assert.equal(status.structuredContent?.state, 'operational')
      const ended = await one.call('destroy', { publicId }, { token: ownerToken })
      assert.equal(ended.structuredContent?.product, 'pulse')
      seesNoToken(one)
    })

    test('a ciphertext is sent, read while reads are left, and destroyed', async (t) => {
      const { one, buy } = await agent(t)
      const ciphertext = randomBytes(64 * 1024)
      const ciphertextBase64 = ciphertext.toString('base64')
      const whisper = await buy<WhisperCapability>('send_whisper', {
        ...{ planId: 'spark', ciphertextBase64, readLimit: 1, receipt: true },
      })
      const { publicId, readToken: token, receiptToken } = whisper
      const read = await one.call('read_whisper', { publicId }, { token })
      assert.deepEqual(read.structuredContent, {
        ciphertextBase64,
        ciphertextBytes: ciphertext.length,
      })
      assert.match(refusalIn(await one.call('read_whisper', { publicId }, { token })), /not found/)
      const other = await buy<WhisperCapability>('send_whisper', {
        ...{ planId: 'spark', ciphertextBase64, revealAt: soon(), receipt: true },
      })
      const early = await one.call('read_whisper', other, { token: other.readToken })
      assert.match(refusalIn(early), /invalid arguments/)
      const sealed = { publicId: other.publicId }
      const closed = await one.call('read_whisper', sealed, { token: other.readToken })
      assert.match(refusalIn(closed), /not revealed.*It opens at/)
      await one.call('destroy', sealed, { token: other.receiptToken ?? '' })
      assert.ok(receiptToken)
      seesNoToken(one)
    })

    test('a whisper is bound to the switch of a monitor, and comes with a receipt', async (t) => {
      const { one, buy, url, mayfly } = await agent(t)
      const monitor = await buy<PulseCapability>('buy_monitor', { planId: 'standard' })
      const { publicId, pingToken, ownerToken } = monitor
      await one.call('ping', { publicId }, { token: pingToken })
      const made = await fetch(`${url}/api/pulse/${publicId}/switch`, {
        method: 'POST',
        headers: { authorization: `Bearer ${ownerToken}` },
      })
      const { switchId } = (await made.json()) as { switchId: string }
      const ciphertextBase64 = randomBytes(64).toString('base64')
      const given = { planId: 'spark', ciphertextBase64, revealWhen: switchId }
      const whisper = await buy<WhisperCapability>('send_whisper', given)
      const status = () => mayfly.whisperReceipt(whisper).status()
      assert.equal((await status()).switch?.state, 'waiting')
      await one.call('ping', { publicId }, { token: pingToken })
      assert.equal((await status()).switch?.state, 'armed')
      const sealed = { publicId: whisper.publicId }
      const closed = await one.call('read_whisper', sealed, { token: whisper.readToken })
      assert.match(refusalIn(closed), /not revealed/)
      for (const [revealWhen, expected] of [
        [`pulse_switch_${'0'.repeat(22)}`, /invalid switch/],
        [publicId, /revealWhen must be/],
        ['x\r\nx-whisper-plan: long', /revealWhen must be/],
      ] as const) {
        assert.match(refusalIn(await one.call('send_whisper', { ...given, revealWhen })), expected)
      }
      seesNoToken(one)
    })

    test('a wait tells its progress, and ends with its time', async (t) => {
      const { one, buy } = await agent(t)
      const inbox = await buy<CatchCapability>('buy_inbox', { planId: 'spark' })
      const { publicId, ownerToken: token } = inbox
      const told: (string | undefined)[] = []
      const onProgress = (message: string | undefined) => void told.push(message)
      const given = { publicId, timeoutSeconds: 1 }
      const { structuredContent } = await one.call('wait_for_webhook', given, { token, onProgress })
      assert.equal(structuredContent?.reason, 'timeout')
      assert.match(told[0] ?? '', /Waiting/)
    })

    test('a wrong argument is refused before anything is done, and says what it must be', async (t) => {
      const { one } = await agent(t)
      const plan = refusalIn(await one.call('buy_inbox', { planId: 'huge' }))
      assert.match(plan, /planId must be spark, standard or long.*Nothing was done/)
      const token = 'catch_owner_0000000000000000000000000000000000000000000000000'
      const argument = refusalIn(await one.call('read_inbox', { publicId: 'catch_x', token }))
      assert.match(argument, /Expected: only/)
      assert.doesNotMatch(argument, /0000/)
    })
  })
}

const soon = (): string => new Date(Date.now() + 3_600_000).toISOString()
