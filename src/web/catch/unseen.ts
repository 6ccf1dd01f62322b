/** The title of the tab counts the requests that come while the person looks elsewhere. */

export function createUnseen(signal: AbortSignal) {
  const { title } = document
  let unseen = 0
  const seen = (): void => {
    if (document.hidden) return
    unseen = 0
    document.title = title
  }
  document.addEventListener('visibilitychange', seen, { signal })
  signal.addEventListener('abort', () => {
    document.title = title
  })
  return {
    arrived(): void {
      if (!document.hidden) return
      unseen++
      document.title = `(${unseen}) ${title}`
    },
  }
}
