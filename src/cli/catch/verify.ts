/** `mayfly catch verify NAME EVENT`: whether a stored webhook has a valid signature. */
import type { Command } from 'commander'
import {
  type CatchEvent,
  guessProvider,
  type SignatureRules,
  verifySignature,
} from '../../client/index.ts'
import { HMAC_ALGORITHMS } from '../../protocol/signatures/mac.ts'
import { SIGNATURE_PROVIDERS } from '../../protocol/signatures/signatures.ts'
import { firstLine, readSecret } from '../ask.ts'
import { client, wholeNumber } from '../cli.ts'
import { CliError, EXIT } from '../exit.ts'
import { columns, examples, harmless } from '../text.ts'
import { loadCatch } from '../vault/saved.ts'
import { findEvent } from './events.ts'

const ENCODINGS = ['hex', 'base64'] as const
const ALGORITHMS = Object.keys(HMAC_ALGORITHMS) as (keyof typeof HMAC_ALGORITHMS)[]
/** A thousand years: as good as any. */
const MAX_TOLERANCE_SECONDS = 9_999_999_999

type Options = {
  provider?: string
  secretFile: string
  tolerance: string
  header?: string
  algorithm: string
  encoding: string
  prefix: string
}

export function addCatchVerify(parent: Command): void {
  parent
    .command('verify')
    .description("check a stored webhook's signature on this machine")
    .argument('<name>', 'the inbox')
    .argument('<event>', 'its id or sequence number')
    .option(
      '--provider <name>',
      `whose rules: ${SIGNATURE_PROVIDERS.join(', ')}; by default guessed`,
    )
    .option('--secret-file <file>', "the sender's secret: the first line, or - for stdin", '-')
    .option('--tolerance <seconds>', 'how far a timestamp may be from the arrival', '300')
    .option('--header <name>', 'for hmac: the header with the signature')
    .option('--algorithm <name>', `for hmac: ${ALGORITHMS.join(', ')}`, 'sha256')
    .option('--encoding <name>', `for hmac: ${ENCODINGS.join(' or ')}`, 'hex')
    .option('--prefix <text>', 'for hmac: what stands before the signature, such as sha256=', '')
    .addHelpText(
      'after',
      `${examples(
        'mayfly catch verify hooks 7 --secret-file github-secret',
        'pass show stripe/whsec | mayfly catch verify hooks 7 --provider stripe',
        'mayfly catch verify hooks 7 --provider hmac --header X-Signature --encoding base64 < secret',
      )}
The secret is never sent, and is no argument, which other users of this machine could see. A timestamp is compared
with the time at which the webhook came. The exit code is 0 for a valid signature, else 1.
`,
    )
    .action(
      client<Options, [name: string, event: string]>(async (cli, options, [name, which]) => {
        const { capability, baseUrl } = loadCatch(cli, name)
        const rules = rulesOf(options)
        const event = await findEvent(cli.mayfly(baseUrl).catch(capability), which)
        const chosen = rules ?? guessedRules(event, options)
        const { secretFile } = options
        const secret =
          secretFile === '-'
            ? await readSecret(cli, 'The secret of the sender: ')
            : firstLine(secretFile)
        const verdict = await verifySignature(event, { ...chosen, secret })
        const { id, sequence } = event
        cli.answer({ id, sequence, ...verdict }, described(verdict.provider, verdict.sentence))
        return verdict.valid ? EXIT.ok : EXIT.failed
      }),
    )
}

/** The rules that the options name, or null to guess the provider. @throws CliError for a wrong option. */
function rulesOf({ provider, ...options }: Options): SignatureRules | null {
  if (provider === undefined) return null
  const chosen = oneOf(provider, SIGNATURE_PROVIDERS, '--provider')
  const toleranceSeconds = toleranceOf(options)
  if (chosen !== 'hmac') return { provider: chosen, toleranceSeconds }
  if (!options.header) {
    throw new CliError('--provider hmac needs --header, the header with the signature.', EXIT.usage)
  }
  return {
    provider: chosen,
    toleranceSeconds,
    header: options.header,
    algorithm: oneOf(options.algorithm, ALGORITHMS, '--algorithm'),
    encoding: oneOf(options.encoding, ENCODINGS, '--encoding'),
    prefix: options.prefix,
  }
}

function guessedRules(event: CatchEvent, options: Pick<Options, 'tolerance'>): SignatureRules {
  const provider = guessProvider(event)
  if (provider !== null) return { provider, toleranceSeconds: toleranceOf(options) }
  throw new CliError(
    'No header of this webhook names a known sender. Choose its rules with --provider.',
    EXIT.usage,
  )
}

const toleranceOf = ({ tolerance }: Pick<Options, 'tolerance'>): number =>
  wholeNumber(tolerance, { option: '--tolerance', least: 0, most: MAX_TOLERANCE_SECONDS })

function oneOf<Name extends string>(text: string, names: readonly Name[], option: string): Name {
  const found = names.find((name) => name === text)
  if (found !== undefined) return found
  throw new CliError(`${option} must be one of ${names.join(', ')}.`, EXIT.usage)
}

const described = (provider: string, sentence: string): string =>
  `${columns([['rules of', provider]])}${harmless(sentence)}\n`
