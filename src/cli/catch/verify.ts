/** `mayfly catch verify NAME EVENT`: whether a stored webhook has a valid signature. */
import { guessProvider, type SignatureRules, verifySignature } from '../../client/index.ts'
import { HMAC_ALGORITHMS, type HmacAlgorithm } from '../../protocol/signatures/mac.ts'
import { SIGNATURE_PROVIDERS } from '../../protocol/signatures/signatures.ts'
import { client } from '../cli.ts'
import { whole } from '../declare.ts'
import { EXIT, misuse } from '../exit.ts'
import { goesWith, secretFrom } from '../options.ts'
import { columns, harmless } from '../text.ts'
import { loadCatch } from '../vault/saved.ts'
import { findEvent } from './events.ts'

const HMAC_NAMES = Object.keys(HMAC_ALGORITHMS) as HmacAlgorithm[]
/** A thousand years: as good as any. */
const MAX_TOLERANCE_SECONDS = 9_999_999_999

export const addCatchVerify = client({
  command: 'verify',
  says: "check a stored webhook's signature on this machine",
  takes: {
    '<name>': 'the inbox',
    '<event>': 'its id or sequence number',
    '--provider <name>': ['whose rules; by default guessed', SIGNATURE_PROVIDERS],
    '--secret-file <file>': ["the sender's secret: the first line, or - for stdin", String, '-'],
    '--tolerance <seconds>': [
      'how far a timestamp may be from the arrival',
      whole(0, MAX_TOLERANCE_SECONDS),
      300,
    ],
    '--header <name>': 'for hmac: the header with the signature',
    '--algorithm <name>': ['for hmac: of the MAC', HMAC_NAMES, 'sha256'],
    '--encoding <name>': ['for hmac: of the signature', ['hex', 'base64'], 'hex'],
    '--prefix <text>': ['for hmac: what stands before the signature, such as sha256=', String, ''],
  },
  examples: [
    'mayfly catch verify hooks 7 --secret-file github-secret',
    'pass show stripe/whsec | mayfly catch verify hooks 7 --provider stripe',
    'mayfly catch verify hooks 7 --provider hmac --header X-Signature --encoding base64 < secret',
  ],
  notes: `
The secret is never sent, and is no argument, which other users of this machine could see. A timestamp is compared
with the time at which the webhook came. The exit code is 0 for a valid signature, else 1.
`,
  async run(cli, { name, event: which, provider: named, header, ...given }) {
    const { inbox } = loadCatch(cli, name)
    if (named === 'hmac' && !header) {
      throw misuse('--provider hmac needs --header, the one of the signature.')
    }
    goesWith('--provider hmac', named === 'hmac', { '--header': header })
    const event = await findEvent(inbox, which)
    const provider = named ?? guessProvider(event)
    if (provider === null) {
      throw misuse(
        'No header of this webhook names a known sender. Choose its rules with --provider.',
      )
    }
    const { tolerance: toleranceSeconds, algorithm, encoding, prefix, secretFile } = given
    const hmac = { header: String(header), algorithm, encoding, prefix }
    const rules: SignatureRules =
      provider === 'hmac' ? { provider, toleranceSeconds, ...hmac } : { provider, toleranceSeconds }
    const secret = await secretFrom(cli, secretFile, 'The secret of the sender: ')
    const verdict = await verifySignature(event, { ...rules, secret })
    const { id, sequence } = event
    const rows = [['rules of', verdict.provider]]
    cli.answer({ id, sequence, ...verdict }, `${columns(rows)}${harmless(verdict.sentence)}\n`)
    return verdict.valid ? EXIT.ok : EXIT.failed
  },
})
