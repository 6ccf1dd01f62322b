/** `mayfly mcp`: the tools for a host of MCP, on stdin and stdout. */
import { client } from './cli.ts'

export const addMcp = client({
  command: 'mcp',
  says: 'serve tools to an agent over stdio, by the Model Context Protocol (docs/mcp.md)',
  takes: {
    '--show-codes': 'answer the codes of all sent whispers, not only of what the agent sent',
  },
  examples: [
    'MAYFLY_WALLET_URL=simulator: mayfly mcp --max-sats 300',
    'claude mcp add mayfly -e MAYFLY_URL=https://mayfly.example -- mayfly mcp',
  ],
  notes: `
A host of MCP starts it. It buys from MAYFLY_WALLET_URL, within --max-sats and the budget of the day, and saves
what it bought by name, so that no token goes through the model. Without a wallet it answers invoices.
`,
  async run(cli, { showCodes = false }) {
    if (process.stdin.isTTY) cli.note('A host of MCP starts this, and talks to it on stdin.')
    const { serveMcp } = await import('./mcp/serve.ts')
    return serveMcp(cli, showCodes)
  },
})
