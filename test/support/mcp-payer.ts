/** mppx as a client of MCP that pays by itself. */
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { McpClient } from 'mppx/mcp/client'
import type { After } from './folder.ts'
import { mppxLightning } from './mppx-lightning.ts'

/** @param address of `/mcp`, with its query. */
export async function mppxClient(
  t: After,
  address: string,
  payInvoice: (invoice: string) => Promise<string>,
) {
  const client = new Client({ name: 'mppx', version: '1' })
  // biome-ignore lint/suspicious/noExplicitAny: its types differ from those of its interface.
  await client.connect(new StreamableHTTPClientTransport(new URL(address)) as any)
  t.after(() => client.close())
  return McpClient.wrap(client, { methods: [mppxLightning(payInvoice)] })
}
