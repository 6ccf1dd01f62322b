/** The tools that look at what is sold, use what was bought, and end it. */
import { MAX_CIPHERTEXT_BYTES } from '../mcp-tools/bounds.ts'
import {
  bearer,
  expectJson,
  faultIn,
  idIn,
  productOf,
  Refusal,
  refusalOf,
  resultOf,
  type Tool,
  text,
} from './call.ts'

export const catalog: Tool = async (call) =>
  resultOf(expectJson(await call.ask({ method: 'GET', path: '/api/catalog' })))

/** The lengths that are asked for in turn: most whispers are short, and a network reads several of them at once. */
const LENGTHS = [64 * 1024, MAX_CIPHERTEXT_BYTES]
/** What a result holds of each byte until its client has taken it: base64, as a value and in the content. */
const COPIES = 4
/** Other answers have been taken by then. */
const RETRY_SECONDS = 10

export const createReadWhisper =
  ({ publicUrl }: { publicUrl: () => string }): Tool =>
  async (call) => {
    const { connection } = call
    const path = `/w/${idIn(call)}`
    const token = bearer(call)
    for (const length of LENGTHS) {
      // Before the read is spent: an answer for which there is no room would lose it.
      if (!connection.hold(COPIES * length)) {
        throw new Refusal(NO_ROOM, { status: 429, retryAfterSeconds: RETRY_SECONDS })
      }
      const answered = await call.ask({
        ...{ method: 'GET', path },
        headers: { ...token, 'x-whisper-max-bytes': length },
      })
      const { status, body } = answered
      if (status === 400 && faultIn(body).error === 'ciphertext too large') continue
      connection.hold(status === 200 ? COPIES * body.length : 0)
      if (status !== 200) throw refusalOf(answered)
      return resultOf({ ciphertextBase64: body.toString('base64'), ciphertextBytes: body.length })
    }
    connection.hold(0)
    throw new Refusal(
      `ciphertext too large. A call answers at most ${MAX_CIPHERTEXT_BYTES} bytes, and this has more. No read was spent. Read it over HTTP, which spends one: GET ${publicUrl()}${path} with Authorization: Bearer <the same token>.`,
    )
  }

const NO_ROOM = `rate limited. Other answers to this network hold the memory that this one needs. No read was spent. Retry after ${RETRY_SECONDS} seconds.`

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
