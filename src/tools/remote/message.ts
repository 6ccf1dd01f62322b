/** Reads one message: sized up before it is parsed, and cut down to what is used where its answer takes long. */
import { invalid, problem } from '../../http/errors.ts'
import { isObject, MAX_JSON, parseStrictJsonBytes, sizeOfJson } from '../../lib/json.ts'
import { TOKEN_META } from '../tool.ts'

/** The largest message without a ciphertext. */
export const MAX_PLAIN_BYTES = 64 * 1024
/** The one string that may be longer, and the one tool that takes it. */
const LONG = { name: 'ciphertextBase64', tool: 'send_whisper' }
/** What a parser makes of a sign: the largest part of a value that has no text. */
const BYTES_OF_SIGN = 100
/** What is left of a message that waits. */
const WAIT_BYTES = 2 * 1024
/** The longest text in a message that waits. A token has 128 signs at most. */
const MAX_SHORT = 128
const PROTOCOL_META = 'io.modelcontextprotocol/protocolVersion'
const CAPABILITIES_META = 'io.modelcontextprotocol/clientCapabilities'

/**
 * The message, and what is held of it. One that waits is made anew of what its wait needs, because many wait at
 * once and for long.
 * @param reserve room for what a parser makes of it. @throws Problem for a message that costs more than one needs.
 */
export function readMessage(
  body: Uint8Array,
  reserve: (bytes: number) => void,
): { message: unknown; heldBytes: number } {
  const size = sizeOfJson(body, LONG.name)
  if (size === null) {
    throw invalid('invalid request body', {
      expected: `at most ${MAX_JSON.signs} of { } [ ] , : outside of strings, and ${MAX_JSON.depth} levels`,
    })
  }
  if (size.bytesBeside > MAX_PLAIN_BYTES) throw problem('request too large')
  const heldBytes = body.length + BYTES_OF_SIGN * size.signs
  reserve(heldBytes)
  const message = parseStrictJsonBytes(body)
  // A batch, which one old revision had, would multiply what one request may do.
  if (message === undefined || Array.isArray(message)) {
    throw invalid('invalid request body', {
      expected: 'one message of JSON-RPC, as JSON in UTF-8 with each member once',
    })
  }
  const { method, params } = isObject(message) ? message : {}
  const name = isObject(params) ? params.name : undefined
  if (body.length > MAX_PLAIN_BYTES && name !== LONG.tool) throw problem('request too large')
  const isWait = method === 'tools/call' && name === 'wait_for_webhook'
  if (!isWait || !isObject(message) || !isObject(params)) return { message, heldBytes }
  return { message: { ...briefly(message), params: briefParams(params) }, heldBytes: WAIT_BYTES }
}

const briefly = ({ jsonrpc, id, method }: Record<string, unknown>) => ({
  jsonrpc,
  ...(id === undefined ? {} : { id: short(id) }),
  method,
})

/** The arguments stay as they are: a schema that knows all of them refuses the call at once, or bounds them. */
function briefParams({ name, arguments: given, _meta }: Record<string, unknown>): object {
  const params = { name, ...(given === undefined ? {} : { arguments: given }) }
  if (!isObject(_meta)) return params
  const meta: Record<string, unknown> = {}
  for (const member of ['progressToken', TOKEN_META, PROTOCOL_META]) {
    if (_meta[member] !== undefined) meta[member] = short(_meta[member])
  }
  // The protocol wants them there, and a wait asks its client for nothing.
  if (isObject(_meta[CAPABILITIES_META])) meta[CAPABILITIES_META] = {}
  return { ...params, _meta: meta }
}

/** @throws Problem for a list, an object, or a long text. */
function short(value: unknown): unknown {
  if (typeof value === 'string' ? value.length <= MAX_SHORT : typeof value !== 'object' || !value) {
    return value
  }
  throw problem('invalid request body')
}
