import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { test } from 'node:test'
import { promisify } from 'node:util'
import vectors from '../vectors/bolt11.json' with { type: 'json' }

const run = promisify(execFile)
const moduleUrl = (name: string): string =>
  new URL(`../../src/protocol/${name}.ts`, import.meta.url).href

test('a library of signatures that cannot be loaded is an error of its own, and no wrong signature', async () => {
  const [{ invoice, payee }] = vectors.own as [(typeof vectors.own)[number]]
  // A process of its own: in this one another test may have loaded the library.
  const script = `
    import { registerHooks } from 'node:module'
    registerHooks({ resolve(name, context, next) {
      if (name === 'tiny-secp256k1') throw new Error('there is no such library')
      return next(name, context)
    } })
    const { decodeInvoice } = await import(${JSON.stringify(moduleUrl('bolt11'))})
    const { payeeOf } = await import(${JSON.stringify(moduleUrl('bolt11-sign'))})
    const invoice = decodeInvoice(${JSON.stringify(invoice)})
    const errors = []
    for (const payee of [null, ${JSON.stringify(payee)}]) {
      try { payeeOf({ ...invoice, payee }) } catch ({ message }) { errors.push(message) }
    }
    console.log(JSON.stringify(errors))`
  const { stdout } = await run(process.execPath, ['--input-type=module', '--eval', script])
  assert.deepEqual(JSON.parse(stdout), ['there is no such library', 'there is no such library'])
})
