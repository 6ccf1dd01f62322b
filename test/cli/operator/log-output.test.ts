import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { pino } from 'pino'
import { onceATurn } from '../../../src/cli/operator/log-output.ts'
import { REDACTED } from '../../../src/cli/operator/serve.ts'

test('the lines of one turn are one write, in their order', async () => {
  const written: string[] = []
  const log = onceATurn({ write: (text) => written.push(text) })
  log.write('a\n')
  await Promise.resolve()
  log.write('b\n')
  assert.deepEqual(written, [])
  await turn()
  assert.deepEqual(written, ['a\nb\n'])
  log.write('c\n')
  await turn()
  assert.deepEqual(written, ['a\nb\n', 'c\n'])
})

test('the lines left at the end are written once', async () => {
  const written: string[] = []
  const log = onceATurn({ write: (text) => written.push(text) })
  log.write('the last words\n')
  log.flush()
  log.flush()
  await turn()
  assert.deepEqual(written, ['the last words\n'])
})

test('the log drops what proves a payment, wherever a line carries it', () => {
  const lines: string[] = []
  const log = pino(
    { redact: { paths: REDACTED, remove: true } },
    { write: (line) => lines.push(line) },
  )
  const proof = '5f'.repeat(32)
  log.info({ preimage: proof, 'payment-preimage': proof, authorization: proof })
  log.info({ err: { preimage: proof, 'payment-preimage': proof, authorization: proof } })
  log.info({ headers: { 'payment-preimage': proof }, req: { headers: { a: proof } } })
  assert.equal(lines.length, 3)
  assert.equal(lines.join('').includes(proof), false)
})
