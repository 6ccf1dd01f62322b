/** The paths of a product that programs call, besides `/api/`, and its own headers. */

export type ApiSurface = {
  roots: readonly Root[]
  /** The request headers that a preflight allows if the page does not name its headers. */
  requestHeaders: readonly string[]
  /** The response headers that a page may read. */
  responseHeaders: readonly string[]
}

/** The first part of a path, such as `/p/`. */
export type Root = {
  path: `/${string}/`
  /** The sender chooses the rest of the path after the id: it is not routed, and stored as sent. */
  hasRawPaths?: true
}
