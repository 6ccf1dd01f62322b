/** The calls to LNURL providers: GET for JSON through the guarded way out, with its failures as sentences. */

import { createOutbound, type OutboundOptions } from '../alerts/outbound.ts'
import type { OutboundError } from '../alerts/outbound-rules.ts'
import { parseJsonBytes } from '../lib/json.ts'
import { LnurlError } from '../protocol/lnurl.ts'

/** LNURL metadata (LUD-06) may contain a picture. Up to 136 536 characters are common. */
const MAX_ANSWER_BYTES = 256 * 1024
/** LNURL servers are small. More concurrent calls would look like an attack. */
const HOSTS = { concurrent: 4, waiting: 32, pauses: true }
/** With a look-up and a call, less than the 15 seconds that the middleware waits for the service. */
const WAIT_MS = 2_000

export type LnurlHttpOptions = Omit<OutboundOptions, 'hosts' | 'maxAnswerBytes'>

export type LnurlHttp = {
  /**
   * Sends a GET to a URL that `checkedUrl` accepted. `json` is undefined for an answer that is not
   * JSON.
   * @throws LnurlError if the server does not answer.
   */
  get(url: URL): Promise<{ status: number; json: unknown }>
  close(): Promise<void>
}

export function createLnurlHttp(options: LnurlHttpOptions): LnurlHttp {
  const out = createOutbound({
    ...options,
    hosts: HOSTS,
    maxAnswerBytes: MAX_ANSWER_BYTES,
    timeouts: { waitMs: WAIT_MS, ...options.timeouts },
  })
  return {
    async get(url) {
      try {
        const { status, body } = await out.send({
          url,
          method: 'GET',
          from: url.hostname,
          headers: { accept: 'application/json', 'user-agent': 'lnurl-pay' },
        })
        return { status, json: parseJsonBytes(body) }
      } catch (error) {
        // `send` throws nothing else.
        throw asLnurlError(error as OutboundError)
      }
    },
    close: out.close,
  }
}

const SENTENCES: Record<OutboundError['reason'], string> = {
  'not public': 'the name of the provider leads to an address that is not public',
  ourselves: 'the provider is this service',
  blocked: 'the operator blocks the provider',
  nowhere: 'the name of the provider leads nowhere',
  unreachable: 'the provider cannot be reached',
  'too slow': 'the provider takes too long',
  'too large': 'the answer of the provider is too large',
  'too busy': 'the provider is too busy',
  paused: 'the provider does not answer',
}

/** One sentence for the log and the operator. It quotes nothing that the server sent. */
function asLnurlError(error: OutboundError): LnurlError {
  const code = error.code === '' ? '' : ` (${error.code})`
  return new LnurlError(`${SENTENCES[error.reason]}${code}`, { cause: error })
}
