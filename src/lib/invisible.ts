/**
 * Characters that nobody sees, by which a stranger's text could look like other text, steer a terminal, or speak to a
 * model alone: controls, changes of the direction of writing, separators of lines, spaces without a width,
 * unassigned and private characters, and halves of a pair. What joins and colours an emoji is seen.
 */
const INVISIBLE =
  /(?!(?<=[\p{Extended_Pictographic}\p{Emoji_Modifier}]\ufe0f?)\u200d(?=\p{Extended_Pictographic}))(?!(?<=\p{Extended_Pictographic})\ufe0f)[\p{C}\p{Default_Ignorable_Code_Point}\u2028\u2029]/gu

type Kept = {
  /** Characters that stay, such as `\n\t` in a text of several lines. */
  keep?: string
}

/** The text with `show` in place of each invisible character. @param show is given the code point. */
export const replaceInvisible = (
  text: string,
  show: (codePoint: number) => string,
  { keep = '' }: Kept = {},
): string =>
  text.replace(INVISIBLE, (character) =>
    keep.includes(character) ? character : show(character.codePointAt(0) ?? 0),
  )

export const hasInvisible = (text: string, { keep = '' }: Kept = {}): boolean =>
  [...text.matchAll(INVISIBLE)].some(([character]) => !keep.includes(character))
