/** What a stranger sent, to be shown. */
export type Content = {
  bytes: Uint8Array<ArrayBuffer>
  contentType: string | null
  /** What a screen reader calls it, such as `Body`. */
  label: string
  /** How many multipart bodies it is in. */
  depth: number
  /** The bytes as they were sent, if others are shown. */
  sent?: Uint8Array
}
