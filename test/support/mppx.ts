/** mppx with a Lightning method, which it does not bring, and as a client of MCP that pays by itself. */
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { Credential, Method, z } from 'mppx'
import { McpClient } from 'mppx/mcp/client'
import type { After } from './folder.ts'

/** Pays invoices by a function that resolves to the preimage. */
export function mppxLightning(payInvoice: (invoice: string) => Promise<string>) {
  const charge = Method.from({
    name: 'lightning',
    intent: 'charge',
    schema: {
      credential: { payload: z.object({ preimage: z.string() }) },
      request: z.object({
        amount: z.string(),
        currency: z.string(),
        description: z.optional(z.string()),
        methodDetails: z.object({
          invoice: z.string(),
          network: z.string(),
          paymentHash: z.string(),
        }),
      }),
    },
  })
  return Method.toClient(charge, {
    async createCredential({ challenge }) {
      const preimage = await payInvoice(challenge.request.methodDetails.invoice)
      return Credential.serialize(Credential.from({ challenge, payload: { preimage } }))
    },
  })
}

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
