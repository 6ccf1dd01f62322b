/** The end of a command's help: how it is used, a line each. */
export const examples = (...lines: string[]): string =>
  `\nExamples:\n${lines.map((line) => `  ${line}\n`).join('')}`
