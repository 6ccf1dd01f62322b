/** Reads one message, which is sized up before it is parsed. */
import { invalid, problem } from '../../http/errors.ts'
import { isObject, MAX_JSON, parseStrictJsonBytes, sizeOfJson } from '../../lib/json.ts'

/** The largest message without a ciphertext. */
export const MAX_PLAIN_BYTES = 64 * 1024
/** The one string that may be longer, and the one tool that takes it. */
const LONG = { name: 'ciphertextBase64', tool: 'send_whisper' }
/** What a parser makes of a sign: the largest part of a value that has no text. */
const BYTES_OF_SIGN = 100
/** Many wait at once, and for long, each with its message. Hosts send about 4 KiB. */
const MAX_WAIT_BYTES = 32 * 1024

/**
 * The message, and what is held of it.
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
  const params = isObject(message) ? message.params : undefined
  const name = isObject(params) ? params.name : undefined
  if (body.length > MAX_PLAIN_BYTES && name !== LONG.tool) throw problem('request too large')
  if (heldBytes > MAX_WAIT_BYTES && name === 'wait_for_webhook') {
    throw invalid('request too large', {
      expected: `at most ${MAX_WAIT_BYTES} bytes for a call that waits, with ${BYTES_OF_SIGN} for each of { } [ ] , :`,
    })
  }
  return { message, heldBytes }
}
