/** `mayfly catch verify NAME EVENT`: whether a stored webhook has a valid signature. */
import { type Command, Option } from 'commander'
import { guessProvider, type SignatureRules, verifySignature } from '../../client/index.ts'
import { HMAC_ALGORITHMS } from '../../protocol/signatures/mac.ts'
import { SIGNATURE_PROVIDERS } from '../../protocol/signatures/signatures.ts'
import { client } from '../cli.ts'
import { CliError, EXIT } from '../exit.ts'
import { goesWith, secretFrom, whole } from '../options.ts'
import { columns, harmless } from '../text.ts'
import { loadCatch } from '../vault/saved.ts'
import { findEvent } from './events.ts'

/** A thousand years: as good as any. */
const MAX_TOLERANCE_SECONDS = 9_999_999_999

type HmacRules = Extract<SignatureRules, { provider: 'hmac' }>

type Options = Required<Pick<HmacRules, 'algorithm' | 'encoding' | 'prefix'>> & {
  provider?: (typeof SIGNATURE_PROVIDERS)[number]
  secretFile: string
  tolerance: number
  header?: string
}

export function addCatchVerify(parent: Command): void {
  client<Options, [name: string, event: string]>(
    parent
      .command('verify')
      .description("check a stored webhook's signature on this machine")
      .argument('<name>', 'the inbox')
      .argument('<event>', 'its id or sequence number')
      .addOption(
        new Option('--provider <name>', 'whose rules; by default guessed').choices(
          SIGNATURE_PROVIDERS,
        ),
      )
      .option('--secret-file <file>', "the sender's secret: the first line, or - for stdin", '-')
      .option(
        '--tolerance <seconds>',
        'how far a timestamp may be from the arrival',
        whole(0, MAX_TOLERANCE_SECONDS),
        300,
      )
      .option('--header <name>', 'for hmac: the header with the signature')
      .addOption(
        new Option('--algorithm <name>', 'for hmac: of the MAC')
          .choices(Object.keys(HMAC_ALGORITHMS))
          .default('sha256'),
      )
      .addOption(
        new Option('--encoding <name>', 'for hmac: of the signature')
          .choices(['hex', 'base64'])
          .default('hex'),
      )
      .option('--prefix <text>', 'for hmac: what stands before the signature, such as sha256=', ''),
    {
      examples: [
        'mayfly catch verify hooks 7 --secret-file github-secret',
        'pass show stripe/whsec | mayfly catch verify hooks 7 --provider stripe',
        'mayfly catch verify hooks 7 --provider hmac --header X-Signature --encoding base64 < secret',
      ],
      notes: `
The secret is never sent, and is no argument, which other users of this machine could see. A timestamp is compared
with the time at which the webhook came. The exit code is 0 for a valid signature, else 1.
`,
    },
    async (cli, options, [name, which]) => {
      const { inbox } = loadCatch(cli, name)
      const { provider: named, tolerance: toleranceSeconds, header, ...rest } = options
      if (named === 'hmac' && !header) {
        throw new CliError('--provider hmac needs --header, the one of the signature.', EXIT.usage)
      }
      goesWith('--provider hmac', named === 'hmac', { '--header': header })
      const event = await findEvent(inbox, which)
      const provider = named ?? guessProvider(event)
      if (provider === null) {
        throw new CliError(
          'No header of this webhook names a known sender. Choose its rules with --provider.',
          EXIT.usage,
        )
      }
      const { algorithm, encoding, prefix, secretFile } = rest
      const hmac = { header: String(header), algorithm, encoding, prefix }
      const rules: SignatureRules =
        provider === 'hmac'
          ? { provider, toleranceSeconds, ...hmac }
          : { provider, toleranceSeconds }
      const secret = await secretFrom(cli, secretFile, 'The secret of the sender: ')
      const verdict = await verifySignature(event, { ...rules, secret })
      const { id, sequence } = event
      cli.answer({ id, sequence, ...verdict }, described(verdict.provider, verdict.sentence))
      return verdict.valid ? EXIT.ok : EXIT.failed
    },
  )
}

const described = (provider: string, sentence: string): string =>
  `${columns([['rules of', provider]])}${harmless(sentence)}\n`
