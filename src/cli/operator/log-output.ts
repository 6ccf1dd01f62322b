/** Where the log goes. */

/**
 * Collects the lines of one turn of the event loop, and writes them at its end. Each write is a system
 * call, and a busy service logs several lines in a turn.
 */
export function onceATurn(out: { write(text: string): unknown }): {
  write(line: string): void
  /** Writes the collected lines now, before the process ends. */
  flush(): void
} {
  let lines = ''

  function flush(): void {
    const text = lines
    lines = ''
    if (text !== '') out.write(text)
  }

  return {
    write(line) {
      if (lines === '') setImmediate(flush)
      lines += line
    },
    flush,
  }
}
