/**
 * A function that runs `work` once in a turn of the event loop, however often it is called: after
 * every request that had arrived by then was read, so that their work can go together.
 */
export function coalesce(work: () => void): () => void {
  let isScheduled = false
  function run(): void {
    isScheduled = false
    work()
  }
  return () => {
    if (isScheduled) return
    isScheduled = true
    setImmediate(run)
  }
}
