/**
 * A function that runs `work` once per turn of the event loop, however often it is called. It runs after all
 * requests that have arrived were read, so that their work can be done together.
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
