import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pino } from 'pino'
import { REDACTED, withoutSecrets } from '../../../src/cli/operator/log-redaction.ts'

const PROOF = '5f'.repeat(32)

/** A log as the service has it, and its lines. */
function redactedLog() {
  const lines: string[] = []
  const log = pino(
    { formatters: { log: withoutSecrets }, redact: { paths: REDACTED, remove: true } },
    { write: (line) => lines.push(line) },
  )
  return { log, lines }
}

test('the log drops what proves a payment, wherever a line carries it', () => {
  const { log, lines } = redactedLog()
  const secrets = { preimage: PROOF, 'payment-preimage': PROOF, authorization: PROOF }
  log.info(secrets)
  log.info({ err: secrets })
  log.info({ err: Object.assign(new Error('a failure'), secrets, { headers: secrets }) })
  log.info({ headers: secrets, req: { headers: { a: PROOF } } })
  log.info({ request: { headers: secrets, method: 'GET' } })
  log.child({ headers: secrets }).info({ event: 'of a child' })
  assert.equal(lines.length, 6)
  assert.equal(lines.join('').includes(PROOF), false)
})

test('the log keeps the rest of a line that lost a secret, with the type and stack of its error', () => {
  const { log, lines } = redactedLog()
  const err = Object.assign(new TypeError('a failure'), { preimage: PROOF, attempts: 2 })
  log.info({ event: 'a.failure', err })
  const line = JSON.parse(lines[0] ?? '')
  assert.equal(line.event, 'a.failure')
  assert.equal(line.err.type, 'TypeError')
  assert.equal(line.err.message, 'a failure')
  assert.equal(line.err.attempts, 2)
  assert.match(line.err.stack, /log-redaction\.test/)
  assert.equal(err.preimage, PROOF)
})
