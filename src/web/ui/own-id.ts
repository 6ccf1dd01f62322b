import { useMemo } from 'preact/hooks'

let ids = 0

/** An id that no other element of the page has: Preact's own repeat in each place that it renders into. */
export function useOwnId(): string {
  return useMemo(() => {
    ids++
    return `own-${ids}`
  }, [])
}
