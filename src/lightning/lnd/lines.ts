/** The lines of an endless answer. */

/** Each line, once it has ended. One of more than `maxBytes` is dropped while it is read, and given as an empty one. */
export async function* linesOf(
  body: AsyncIterable<Buffer>,
  maxBytes: number,
): AsyncGenerator<string> {
  /** What there is of a line, or null if that is too much. */
  let parts: Buffer[] | null = []
  let bytes = 0
  for await (const chunk of body) {
    let from = 0
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, from)) {
      add(chunk.subarray(from, end))
      yield Buffer.concat(parts ?? []).toString('utf8')
      parts = []
      bytes = 0
      from = end + 1
    }
    add(chunk.subarray(from))
  }

  function add(part: Buffer): void {
    bytes += part.length
    if (bytes > maxBytes) parts = null
    parts?.push(part)
  }
}
