/** Where the log goes. */

/**
 * Writes what comes within one turn of the event loop at its end, at once: a line alone costs a call of
 * the system, and a busy service has several in a turn.
 */
export function onceATurn(out: { write(text: string): unknown }): {
  write(line: string): void
  /** Writes what there is, for the end of the process, which has no next turn. */
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
