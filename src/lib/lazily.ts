/**
 * Makes something at the first call. A failure is told and forgotten, so that the next call tries again: a moment
 * without free file descriptors must not last until a restart.
 */
export function lazily<Made>(make: () => Promise<Made>): () => Promise<Made> {
  let made: Promise<Made> | null = null
  return () => {
    made ??= make().catch((error: unknown) => {
      made = null
      throw error
    })
    return made
  }
}
