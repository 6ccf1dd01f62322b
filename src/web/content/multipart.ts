/** The fields and files of a form (multipart/form-data), as the browser reads them. */
import { utf8 } from '../../lib/bytes.ts'

export type Part = {
  name: string
  /** Null of a field. */
  filename: string | null
  contentType: string
  bytes: Uint8Array<ArrayBuffer>
}

/** The parts, or null if the body is no whole form of this type. */
export async function partsOf(
  body: Uint8Array<ArrayBuffer>,
  contentType: string | null,
): Promise<Part[] | null> {
  const answer = new Response(body, { headers: { 'content-type': contentType ?? '' } })
  const form = await answer.formData().catch(() => null)
  if (!form) return null
  return Promise.all(
    Array.from(form, async ([name, value]) =>
      typeof value === 'string'
        ? { name, filename: null, contentType: 'text/plain', bytes: utf8(value) }
        : { name, filename: value.name, contentType: value.type, bytes: await bytesOf(value) },
    ),
  )
}

const bytesOf = async (file: File): Promise<Uint8Array<ArrayBuffer>> =>
  new Uint8Array(await file.arrayBuffer())
