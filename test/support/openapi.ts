/** The OpenAPI documents of a server, as its clients read them. */

export type Header = { description: string; schema: object; example?: unknown; required?: boolean }
export type Media = { schema: object; example?: unknown }
export type Answer = {
  description: string
  headers?: Record<string, Header>
  content?: Record<string, Media>
}
export type Parameter = {
  name: string
  in: 'path' | 'query' | 'header'
  required: boolean
  description?: string
  example?: unknown
  schema: object
}
export type Operation = {
  operationId: string
  summary: string
  description: string
  tags: string[]
  security: Record<string, string[]>[]
  parameters?: Parameter[]
  requestBody?: { required?: boolean; content: Record<string, Media> }
  responses: Record<string, Answer>
  'x-payment-info'?: { offers: unknown }
}
export type Document = {
  openapi: string
  info: { title: string; version: string }
  paths: Record<string, Record<string, Operation>>
  components: Record<string, Record<string, unknown>>
  tags?: { name: string; description: string }[]
  externalDocs?: { url: string }
}

/** A document of a server, with each `$ref` replaced by what it refers to. */
export async function openapi(
  { url }: { url: string },
  path: '/openapi.json' | '/openapi-all.json',
): Promise<Document> {
  const document = (await (await fetch(url + path)).json()) as Document
  return resolved(document, document) as Document
}

function resolved(node: unknown, document: Document): unknown {
  if (Array.isArray(node)) return node.map((item) => resolved(item, document))
  if (typeof node !== 'object' || node === null) return node
  if ('$ref' in node) {
    const [, kind = '', name = ''] = /^#\/components\/(\w+)\/(\w+)$/.exec(String(node.$ref)) ?? []
    const part = document.components[kind]?.[name]
    if (part === undefined) throw new Error(`${node.$ref} is named and not there`)
    return resolved(part, document)
  }
  return Object.fromEntries(
    Object.entries(node).map(([key, value]) => [key, resolved(value, document)]),
  )
}
