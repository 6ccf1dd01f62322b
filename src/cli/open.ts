/** `mayfly open NAME`: the page of what is saved, in the browser of this machine. */
import { spawn } from 'node:child_process'
import type { Command } from 'commander'
import { readingPage, sharedAddresses } from './addresses.ts'
import { type Cli, client } from './cli.ts'
import { examples } from './examples.ts'
import { EXIT } from './exit.ts'
import { isPingOnly, type Kept, loadKept } from './vault/saved.ts'

/** What opens an address in the browser of its user. */
const OPENERS: Partial<Record<NodeJS.Platform, string>> = { darwin: 'open', linux: 'xdg-open' }

export function addOpen(program: Command): void {
  program
    .command('open')
    .description('open the page of what is saved under a name, in a browser')
    .argument('<name>')
    .addHelpText('after', examples('mayfly open hooks', 'mayfly open backup --json'))
    .action(
      client(async (cli, _options, [name]) => {
        const saved = loadKept(cli, name)
        const url = await pageOf(cli, saved)
        cli.answer({ name, url }, `${url}\n`)
        if (!/\/status\//.test(url)) {
          cli.note(
            `The page asks for what is saved, unless that browser has it: mayfly export ${name} --out ${name}.json`,
          )
        }
        if (process.stdout.isTTY) launch(url)
        return EXIT.ok
      }),
    )
}

/** No token is in it. A monitor that is shared has a page that needs none. */
async function pageOf(cli: Cli, saved: Kept): Promise<string> {
  const { capability, baseUrl } = saved
  if (capability.product === 'catch') return `${baseUrl}/catch`
  if (capability.product === 'whisper') {
    return capability.receiptToken === undefined ? readingPage(baseUrl) : `${baseUrl}/receipt`
  }
  const page = `${baseUrl}/pulse`
  if (isPingOnly(saved) || !('ownerToken' in capability)) return page
  const status = await cli.mayfly(baseUrl).pulse(capability).status()
  return sharedAddresses(baseUrl, status).statusUrl ?? page
}

/** Without a browser the address was printed, which is enough. */
function launch(url: string): void {
  const opener = OPENERS[process.platform]
  if (opener === undefined) return
  spawn(opener, [url], { stdio: 'ignore', detached: true })
    .on('error', () => undefined)
    .unref()
}
