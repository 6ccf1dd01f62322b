/** A user of a service of its own, on the command line. */
import {
  type CommandLine,
  type CommandOptions,
  commandLine,
  type Running,
  WITH_WALLET,
} from './command-line.ts'
import type { After } from './folder.ts'
import { startServer } from './server.ts'
import { until } from './until.ts'

/** What a user has, by its name. */
type Bought = Record<string, 'catch' | 'pulse'>

/** Starts a service with these settings, and a user of it who has bought this. */
export async function aUser(
  t: After,
  bought: Bought = {},
  environment: Record<string, string> = {},
) {
  const server = await startServer(t, environment)
  const cli = await commandLine(t, server.url)
  for (const [name, product] of Object.entries(bought)) {
    await cli.json(['buy', product, '--name', name], WITH_WALLET)
  }
  const { url, pay } = server
  return { server, cli, url, pay }
}

/** The invoice that a command shows. */
export const invoiceOf = (running: Running): Promise<string> =>
  until('the invoice', () => {
    const [line = ''] = running.out().split('\n')
    return line === '' ? null : (JSON.parse(line) as { invoice: { bolt11: string } }).invoice.bolt11
  })

/** The invoice of a command that was killed when it had shown it. */
export async function interrupted(
  cli: CommandLine,
  args: string[],
  options: CommandOptions = {},
): Promise<string> {
  const running = cli.start(args, options)
  const invoice = await invoiceOf(running)
  running.child.kill('SIGKILL')
  await running.ended
  return invoice
}

/** What `list` shows, as `name state`. */
export async function statesOf(cli: CommandLine, ...options: string[]): Promise<string[]> {
  const listed = (await cli.json(['list', ...options])) as unknown as Record<string, string>[]
  return listed.map(({ name, state }) => `${name} ${state}`)
}
