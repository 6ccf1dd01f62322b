/** `mayfly catch respond NAME …`: chooses how an inbox answers, so that any webhook can be set up with it. */
import type { CatchResponse, CatchResponseShown } from '../../client/index.ts'
import { CHALLENGERS } from '../../protocol/signatures/signatures.ts'
import { type Cli, client } from '../cli.ts'
import { type Given, whole } from '../declare.ts'
import { misuse } from '../exit.ts'
import { goesWith, secretFrom } from '../options.ts'
import { harmless } from '../text.ts'
import { loadCatch } from '../vault/saved.ts'

/** What each sender asks of an address before it sends anything. */
const ECHOES = {
  slack: { json: 'challenge' },
  meta: { query: 'hub.challenge' },
  dropbox: { query: 'challenge' },
  'microsoft-graph': { query: 'validationToken' },
} as const
const SENDERS = [...(Object.keys(ECHOES) as (keyof typeof ECHOES)[]), ...CHALLENGERS]

const TAKES = {
  '<name>': 'the inbox',
  '--for <sender>': ['what this sender asks when it is set up', SENDERS],
  '--secret-file <file>':
    'for zoom and x: the secret of the app; by default, and with -, from stdin',
  '--echo-json <member>': 'send back this member of the JSON body, as text',
  '--echo-query <parameter>': 'send back this parameter of the query, as text',
  '--status <code>': [
    'always this status: 200, 201, 202, 204, 400, 403, 404, 409, 410, 422 or 429',
    whole(200, 429),
  ],
  '--body <text>': 'with --status: this body',
  '--content-type <type>': [
    'with --status: its type, text/plain by default',
    ['text/plain', 'application/json'],
  ],
  '--retry-after <seconds>': ['with --status: when the sender should try again', whole(0, 3600)],
  '--reset': 'answer 204 again',
} as const

export const addCatchRespond = client({
  command: 'respond',
  says: 'show or choose how an inbox answers the requests that it stores, instead of 204',
  takes: TAKES,
  examples: [
    'mayfly catch respond hooks --for slack',
    'mayfly catch respond hooks --for zoom --secret-file zoom-secret',
    `mayfly catch respond hooks --status 200 --content-type application/json --body '{"ok":true}'`,
    'mayfly catch respond hooks --status 429 --retry-after 60',
    'mayfly catch respond hooks --reset',
  ],
  notes: `
A request that does not ask is answered 204. A fixed answer is for POST, PUT, PATCH and DELETE.
`,
  async run(cli, options) {
    const { name } = options
    const chosen = await chosenIn(cli, options)
    const { inbox } = loadCatch(cli, name)
    if (options.reset) await inbox.deleteResponse()
    const shown = chosen ? await inbox.setResponse(chosen) : await inbox.response()
    cli.answer({ name, response: shown }, `${name} answers ${harmless(inWords(shown))}.\n`)
  },
})

/** The answer that the options choose; null if they choose none. */
async function chosenIn(cli: Cli, options: Given<typeof TAKES>): Promise<CatchResponse | null> {
  const { for: sender, echoJson, echoQuery, status, reset } = options
  const ways = [sender, echoJson, echoQuery, status, reset].filter((way) => way !== undefined)
  if (ways.length > 1) {
    const names = '--for, --echo-json, --echo-query, --status and --reset'
    throw misuse(`Choose one of ${names}.`)
  }
  const { body, contentType, retryAfter: retryAfterSeconds, secretFile = '-' } = options
  const asksForSecret = sender === 'zoom' || sender === 'x'
  goesWith('--for zoom or x', asksForSecret, { '--secret-file': options.secretFile })
  const fixed = {
    '--body': body,
    '--content-type': contentType,
    '--retry-after': retryAfterSeconds,
  }
  goesWith('--status', status !== undefined, fixed)
  if (echoJson !== undefined) return { echo: { json: echoJson } }
  if (echoQuery !== undefined) return { echo: { query: echoQuery } }
  // JSON leaves out what is undefined.
  if (status !== undefined) return { status, contentType, body, retryAfterSeconds } as CatchResponse
  if (sender === undefined) return null
  if (!asksForSecret) return { echo: ECHOES[sender] }
  const secret = await secretFrom(cli, secretFile, 'The secret of the app: ')
  return { hmac: { provider: sender, secret } }
}

function inWords(shown: CatchResponseShown): string {
  if ('hmac' in shown) return `the challenge of ${shown.hmac.provider}, and 204 to everything else`
  if ('status' in shown) {
    const { status, body = '', retryAfterSeconds } = shown
    const wait = retryAfterSeconds === undefined ? '' : `, Retry-After ${retryAfterSeconds}`
    return `${status}${body === '' ? '' : ` with ${body}`}${wait}`
  }
  const [[kind, named] = []] = Object.entries(shown.echo)
  const where = kind === 'json' ? 'member of the JSON body' : 'parameter of the query'
  return `with the ${where} ${named}, and 204 to everything else`
}
