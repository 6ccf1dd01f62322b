/**
 * Loaded into the service before it starts (`--import`), and with it into each of its threads. Tells the bench
 * how busy the threads are, and how often the store commits.
 */
import { syncBuiltinESMExports } from 'node:module'
import { performance } from 'node:perf_hooks'
import sqlite from 'node:sqlite'
import threads, {
  isMainThread,
  type Worker,
  type WorkerOptions,
  workerData,
} from 'node:worker_threads'

/** Since the start. `commits` has one count for each thread, and so has `threads`. */
export type Inside = { main: Busy; threads: Busy[]; commits: number[] }
/** Milliseconds. */
type Busy = { idle: number; active: number }

type Data = { commits: SharedArrayBuffer }

if (isMainThread) reportThreads()
else countCommits(workerData as Data)

function reportThreads(): void {
  const started: { worker: Worker; commits: Int32Array }[] = []
  const plain = threads.Worker
  threads.Worker = new Proxy(plain, {
    construct(_, [file, options]: [URL, WorkerOptions?]) {
      const data: Data = { commits: new SharedArrayBuffer(4) }
      const worker = new plain(file, {
        ...options,
        workerData: { ...options?.workerData, ...data },
      })
      started.push({ worker, commits: new Int32Array(data.commits) })
      return worker
    },
  })
  syncBuiltinESMExports()
  process.on('message', () => {
    const inside: Inside = {
      main: performance.eventLoopUtilization(),
      threads: started.map(({ worker }) => worker.performance.eventLoopUtilization()),
      commits: started.map(({ commits }) => commits[0] ?? 0),
    }
    process.send?.(inside)
  })
  // The service ends although the bench could still ask.
  process.channel?.unref()
}

function countCommits({ commits }: Data): void {
  const count = new Int32Array(commits)
  const { prototype } = sqlite.DatabaseSync
  const prepare = prototype.prepare
  prototype.prepare = function (text: string) {
    const statement = prepare.call(this, text)
    if (text !== 'commit') return statement
    const run = statement.run.bind(statement) as () => ReturnType<typeof statement.run>
    statement.run = () => {
      Atomics.add(count, 0, 1)
      return run()
    }
    return statement
  }
}
