/** Stands for `undici` in the way out to strangers: requests go to the servers of the run. */
import type { Agent as Real } from 'undici'
import { call } from '../outbound.ts'

type Request = {
  origin: string
  path: string
  method: string
  headers: Record<string, string>
  body: string | null
  signal: AbortSignal
}

export class Agent {
  readonly #silenceMs: number
  constructor({ headersTimeout }: Real.Options) {
    this.#silenceMs = headersTimeout as number
  }

  async request({ origin, path, method, headers, body, signal }: Request) {
    const url = new URL(path, origin)
    const silent = new AbortController()
    let timer: ReturnType<typeof setTimeout> | undefined
    const silence = new Promise<never>((_, reject) => {
      const give = (): void => {
        reject(Object.assign(new Error('no answer'), { code: 'UND_ERR_HEADERS_TIMEOUT' }))
        // undici hangs up then, which the server notices.
        silent.abort()
      }
      timer = setTimeout(give, this.#silenceMs)
    })
    const hungUp = AbortSignal.any([signal, silent.signal])
    const answer = call({ url, method, headers, body: body ?? '', signal: hungUp })
    const reply = await Promise.race([answer, silence]).finally(() => clearTimeout(timer))
    return {
      statusCode: reply.status,
      headers: reply.headers,
      body: { bytes: async () => Buffer.from(reply.body) },
    }
  }

  async destroy(): Promise<void> {}
}

export function buildConnector(): never {
  throw new Error('no proxy is simulated')
}
