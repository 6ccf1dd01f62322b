/** The tools that look at what is sold, use what was bought, and end it. */
import { type Product, SOLD_PRODUCTS } from '../lib/product-names.ts'
import {
  bearer,
  type Call,
  expectJson,
  idIn,
  Refusal,
  refusalOf,
  resultOf,
  type Tool,
  text,
} from './call.ts'

export const catalog: Tool = async (call) =>
  resultOf(expectJson(await call.ask({ method: 'GET', path: '/api/catalog' })))

export const readWhisper: Tool = async (call) => {
  const answered = await call.ask({
    method: 'GET',
    path: `/w/${idIn(call)}`,
    headers: bearer(call),
  })
  if (answered.status !== 200) throw refusalOf(answered)
  return resultOf({
    ciphertextBase64: answered.body.toString('base64'),
    ciphertextBytes: answered.body.length,
  })
}

export const ping: Tool = async (call) => {
  const { signal = 'ping', exitCode } = call.arguments
  if (exitCode !== undefined && call.arguments.signal !== undefined) {
    throw new Refusal('Send either a signal or an exitCode. No ping was used.')
  }
  const path = exitCode !== undefined ? `/${exitCode}` : signal === 'ping' ? '' : `/${signal}`
  const answered = await call.ask({
    method: 'POST',
    path: `/p/${idIn(call)}${path}`,
    headers: bearer(call),
  })
  if (answered.status !== 204) throw refusalOf(answered)
  return resultOf({ recorded: true })
}

/** The part of a monitor's status that says whether the job runs. */
const STATUS_MEMBERS = [
  'publicId',
  'planId',
  'state',
  'name',
  'description',
  'expectedIntervalSeconds',
  'graceSeconds',
  'remainingHeartbeats',
  'lastPingAt',
  'nextExpectedAt',
  'lateAt',
  'stateChangedAt',
  'expiresAt',
]

export const monitorStatus: Tool = async (call) => {
  const answered = await call.ask({
    method: 'GET',
    path: `/api/pulse/${idIn(call)}`,
    headers: bearer(call),
  })
  const status = expectJson(answered)
  return resultOf(Object.fromEntries(STATUS_MEMBERS.map((name) => [name, status[name]])))
}

export const destroy: Tool = async (call) => {
  const product = productOf(call)
  const answered = await call.ask({
    method: 'DELETE',
    path: `/api/${product}/${idIn(call)}`,
    headers: bearer(call),
  })
  if (answered.status !== 204) throw refusalOf(answered)
  return resultOf({ destroyed: true, product, publicId: text(call.arguments.publicId) })
}

/** The product whose ids begin like this one. */
function productOf({ arguments: given }: Call): Product {
  const [kind] = text(given.publicId).split('_')
  const found = (Object.keys(SOLD_PRODUCTS) as Product[]).find((name) => name === kind)
  if (!found) throw new Refusal('not found. A publicId begins with catch_, whisper_ or pulse_.')
  return found
}
