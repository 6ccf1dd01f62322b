import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { tokenOf } from '../../src/lib/ids.ts'
import { formatWhisperCode } from '../../src/protocol/whisper-code.ts'
import { envelopeLength } from '../../src/protocol/whisper-envelope.ts'
import { lifetimeMs } from '../../src/web/lib/terms.ts'
import { codeIn } from '../../src/web/whisper/code.ts'
import { draft, largestContent, refusalOf, sizeOf, upTo } from '../../src/web/whisper/draft.ts'
import { WHISPER_PLANS } from '../../src/whisper/schema.ts'

const CODE = formatWhisperCode({
  publicId: 'whisper_0123456789abcdefghijkl',
  readToken: tokenOf('whisper_read', new Uint8Array(32).fill(5)),
  key: new Uint8Array(32).fill(7),
  hasPassword: true,
})

suite('a share code in pasted text', () => {
  test('a code is found alone, in a message, and alone with the line breaks of a mail', () => {
    const broken = CODE.replaceAll(/.{60}/g, '$&\r\n ')
    for (const text of [CODE, ` ${CODE}\n`, `Here: ${CODE} (bye)`, broken]) {
      const { code } = codeIn(text)
      assert.equal(code && formatWhisperCode(code), CODE, text)
    }
  })

  test('a code that was cut is called so, wherever', () => {
    for (let length = 'mayfly-whisper:'.length; length < CODE.length - ':p'.length; length++) {
      const { code, problem } = codeIn(`Look: ${CODE.slice(0, length)}`)
      assert.equal(code, null)
      assert.match(problem ?? '', /not whole/, String(length))
    }
  })

  test('the words after a cut code are never taken for the rest of its key', () => {
    const { code } = codeIn(`${CODE.slice(0, -12)}\nSeeYouTomorrowThen`)
    assert.equal(code, null)
  })

  test('a code with a mistake and another text are told apart', () => {
    const at = CODE.indexOf('whisper_read_') + 20
    const wrong = `${CODE.slice(0, at)}${CODE[at] === 'a' ? 'b' : 'a'}${CODE.slice(at + 1)}`
    assert.match(codeIn(wrong).problem ?? '', /mistake/)
    assert.match(codeIn('https://example.com/').problem ?? '', /not a share code/)
  })
})

suite('which plans take a draft', () => {
  test('the largest content is the last that fits, for each plan, name and password', () => {
    const sealings = [
      { hasPassword: false },
      { hasPassword: true, name: 'plan.bin', mediaType: 'application/x-plan' },
    ]
    for (const { maxCiphertextBytes } of Object.values(WHISPER_PLANS)) {
      for (const sealing of sealings) {
        const dataBytes = largestContent(maxCiphertextBytes, sealing)
        assert.ok(envelopeLength({ ...sealing, dataBytes }) <= maxCiphertextBytes)
        assert.ok(envelopeLength({ ...sealing, dataBytes: dataBytes + 1 }) > maxCiphertextBytes)
      }
    }
    const { maxCiphertextBytes } = WHISPER_PLANS.long
    assert.equal(upTo(largestContent(maxCiphertextBytes, { hasPassword: false })), '7.8 MiB')
    assert.equal(largestContent(30, { hasPassword: false }), 0, 'a plan too small for any padding')
  })

  test('a size above a limit never reads like the limit', () => {
    for (const limit of [1023, 1024, 63_500, 63_488, 1_048_576, 8_257_499]) {
      assert.notEqual(sizeOf(limit + 1), upTo(limit), String(limit))
    }
  })

  test('the words of the catalogue say how long a plan lives, and others say nothing', () => {
    for (const { durationLabel, durationSeconds } of Object.values(WHISPER_PLANS)) {
      assert.equal(lifetimeMs(durationLabel), durationSeconds * 1000)
    }
    assert.equal(lifetimeMs('1 hour'), 3_600_000)
    assert.equal(lifetimeMs('2 Weeks'), 14 * 86_400_000)
    for (const words of ['', 'a month', '1.5 days', '24 hours or so', '-1 days']) {
      assert.equal(lifetimeMs(words), null, words)
    }
  })

  test('a plan that ends before the opening time, or at it, is refused', () => {
    const now = Date.parse('2026-01-01T00:00:00Z')
    const refusal = (opensInMs: number, durationLabel: string) =>
      refusalOf(
        { ...WHISPER_PLANS.spark, durationLabel },
        { ...draft.value, opensAt: new Date(now + opensInMs).toISOString() },
        now,
      )
    assert.equal(refusal(86_399_999, '24 hours'), null)
    assert.match(refusal(86_400_000, '24 hours') ?? '', /^Too short: it ends after 24 hours/)
    assert.equal(refusal(86_400_000, 'one day'), null, 'the service decides')
  })
})
