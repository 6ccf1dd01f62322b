/** A Lightning method for mppx, which brings none. */
import { Credential, Method, z } from 'mppx'

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
