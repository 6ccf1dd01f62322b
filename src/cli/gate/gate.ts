/** `mayfly gate intent|prove|poll|verify`. The operator's part is in `operator/gate.ts`. */
import { readFileSync } from 'node:fs'
import type { Command } from 'commander'
import { fetchGateKeys, type GateOutcome } from '../../client/gate.ts'
import { createHttp } from '../../client/http.ts'
import { type GateClient, MayflyError } from '../../client/index.ts'
import { isId, isToken } from '../../lib/ids.ts'
import { type GateReceipt, verifyReceipt } from '../../protocol/gate-receipt.ts'
import { readOptions } from '../../service/config.ts'
import { firstLine, readSecret } from '../ask.ts'
import { type Cli, client } from '../cli.ts'
import { withFile } from '../data-folder.ts'
import { CliError, EXIT } from '../exit.ts'
import { columns, harmless } from '../text.ts'

/** @returns the command group, to which the operator's commands are added. */
export function addGate(program: Command): Command {
  const gate = program
    .command('gate', { hidden: !isGateOn() })
    .description('GATE (private beta): sell requests to an API, and check their receipts')
  gate.commandsGroup('Commands:')
  addIntent(gate)
  addProve(gate)
  addPoll(gate)
  addVerify(gate)
  return gate
}

/** Whether this machine has GATE on. Elsewhere its commands work, and the help of all leaves them out. */
function isGateOn(): boolean {
  try {
    return readOptions(['gate']).gate === 'on'
  } catch {
    // A setting is wrong, which the command says that runs.
    return false
  }
}

type Project = { project: string; keyFile: string }

const withProject = (command: Command): Command =>
  command
    .requiredOption('--project <id>', 'the project, gate_project_…')
    .requiredOption('--key-file <file>', 'a file with the capability of the project, gate_key_…')

function addIntent(parent: Command): void {
  client<Project & { route: string; method: string; path: string; body?: string }>(
    withProject(parent.command('intent'))
      .description('create the payment intent of a request, and show its invoice')
      .requiredOption('--route <id>', 'the route of the request')
      .option('--method <method>', 'the method of the request', 'GET')
      .requiredOption('--path <path>', 'its path and query')
      .option('--body <file>', 'its body'),
    {
      examples: [
        'mayfly gate intent --project gate_project_… --key-file key --route ping --path /ping',
      ],
    },
    async (cli, options) => {
      const { route, method, path, body } = options
      const quote = await gateOf(cli, options).intent({
        ...{ route, method, path },
        ...(body === undefined
          ? {}
          : { body: new Uint8Array(withFile(body, () => readFileSync(body))) }),
      })
      const { intentId, amountSats, recipient, expiresAt, bolt11 } = quote
      cli.answer(
        quote,
        `${columns([
          ['intent', intentId],
          ['pay', `${amountSats} sat to ${harmless(recipient)}, until ${expiresAt}`],
        ])}\n${harmless(bolt11)}\n`,
      )
    },
  )
}

function addProve(parent: Command): void {
  client<Project>(
    withProject(parent.command('prove'))
      .description('prove a payment with its preimage, read from stdin')
      .argument('<intent>', 'gate_intent_…'),
    { examples: ['mayfly gate prove gate_intent_… --project … --key-file key < preimage'] },
    async (cli, options, [intentId]) => {
      const preimage = (await readSecret(cli, 'The preimage: ')).trim()
      return showOutcome(cli, await gateOf(cli, options).prove(intentId, preimage))
    },
  )
}

function addPoll(parent: Command): void {
  client<Project>(
    withProject(parent.command('poll'))
      .description('show the state of an intent')
      .argument('<intent>', 'gate_intent_…'),
    { examples: ['mayfly gate poll gate_intent_… --project … --key-file key'] },
    async (cli, options, [intentId]) => showOutcome(cli, await gateOf(cli, options).poll(intentId)),
  )
}

function addVerify(parent: Command): void {
  client<{ project?: string }, [receipt?: string]>(
    parent
      .command('verify')
      .description('check the signature of a receipt against the public keys of the service')
      .argument('[receipt]', 'the receipt, or - for stdin', '-')
      .option('--project <id>', 'the project that the receipt must be for'),
    { examples: ['mayfly gate verify < receipt'] },
    async (cli, { project }, [given = '-']) => {
      const receipt = (given === '-' ? await readSecret(cli, 'The receipt: ') : given).trim()
      const keys = await fetchGateKeys(createHttp(cli.url, cli.traced(fetch))).catch(
        (error: unknown) => {
          if (!(error instanceof MayflyError && error.phrase === 'not found')) throw error
          throw new CliError(`${cli.url} does not offer GATE: it publishes no keys.`)
        },
      )
      const verdict = await verifyReceipt(receipt, keys)
      if (verdict.outcome !== 'ok') {
        const why = verdict.outcome === 'refused' ? verdict.reason : 'signed by an unknown key'
        throw new CliError(`The receipt is not valid: ${harmless(why)}.`)
      }
      if (project !== undefined && verdict.receipt.aud !== project) {
        throw new CliError('The receipt is genuine, but for another project.')
      }
      cli.answer(verdict.receipt, described(verdict.receipt))
    },
  )
}

function gateOf(cli: Cli, { project, keyFile }: Project): GateClient {
  if (!isId('gate_project', project)) {
    throw new CliError('--project must be the id of a project, gate_project_….', EXIT.usage)
  }
  const capability = firstLine(keyFile).trim()
  if (isToken('gate_key', capability)) return cli.mayfly().gate({ projectId: project, capability })
  throw new CliError(
    `${keyFile} must contain the capability of the project, gate_key_….`,
    EXIT.usage,
  )
}

function showOutcome(cli: Cli, outcome: GateOutcome): number {
  if (outcome.settled) {
    cli.answer(
      outcome,
      `Authorized, until ${harmless(outcome.expiresAt)}. The receipt:\n\n${harmless(outcome.receipt)}\n`,
    )
    return EXIT.ok
  }
  cli.answer(outcome, `Not paid yet: ${harmless(outcome.status).replaceAll('_', ' ')}.\n`)
  return EXIT.notPaid
}

const described = ({ aud, route, htm, htp, sat, iat, exp, by }: GateReceipt): string =>
  columns([
    ['genuine', `signed ${new Date(iat * 1000).toISOString()}`],
    ['project', harmless(aud)],
    ['request', harmless(`${htm} ${htp} (${route})`)],
    ['paid', `${sat} sat, verified by ${by}`],
    ['admits', `until ${new Date(exp * 1000).toISOString()}`],
  ])
