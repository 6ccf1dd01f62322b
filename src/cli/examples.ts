/** The examples at the end of a command's help, one per line. */
export const examples = (...lines: string[]): string =>
  `\nExamples:\n${lines.map((line) => `  ${line}\n`).join('')}`
