/** Where programs call a product, besides `/api/`, and the headers that are its own. */

export type ApiSurface = {
  roots: readonly Root[]
  /** What its requests may carry; a page that names its headers is granted any. */
  requestHeaders: readonly string[]
  /** What a page may read of its answers. */
  responseHeaders: readonly string[]
}

/** The beginning of paths, such as `/p/`. */
export type Root = {
  path: `/${string}/`
  /** The rest of the path after the id belongs to whoever sends: it is not routed, and kept as sent. */
  hasRawPaths?: true
}
