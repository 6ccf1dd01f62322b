/** Load by wrk, which costs the machine a fraction of autocannon's CPU time. */
import { spawn, spawnSync } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { load, type Measured } from './load.ts'

export type WrkLoad = {
  url: string
  /** One after another, far apart. */
  paths: string[]
  connections: number
  seconds: number
  headers: Record<string, string>
  body?: string
}

/** A prime, so that it has no common divisor with the number of paths. */
const STEP = 7_919

/** Answers are expected to be 204. Where wrk is not installed, autocannon makes the load. */
export async function loadWrk(ask: WrkLoad): Promise<Measured> {
  if (spawnSync('wrk', ['-v']).error) return loadByAutocannon(ask)
  const folder = await mkdtemp(join(tmpdir(), 'mayfly-bench-'))
  try {
    const script = join(folder, 'load.lua')
    await writeFile(script, scriptOf(ask))
    const { connections, seconds, url } = ask
    const args = ['-t1', `-c${connections}`, `-d${seconds}s`, '-s', script, url]
    const { requests, microseconds, p50, p99, errors } = JSON.parse(await outputOf('wrk', args))
    const count = requests - errors
    return {
      perSecond: Math.round((1e6 * count) / microseconds),
      count,
      p50: p50 / 1000,
      p99: p99 / 1000,
      errors,
    }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

function scriptOf({ paths, headers, body }: WrkLoad): string {
  const table = Object.entries(headers).map(([name, value]) => `['${name}'] = '${value}'`)
  return `local requests = {}
function init()
  for i, path in ipairs({ ${paths.map((path) => `'${path}'`).join(', ')} }) do
    requests[i] = wrk.format('POST', path, { ${table.join(', ')} }, ${body ? `[==[${body}]==]` : 'nil'})
  end
end
local n = 0
function request()
  n = n + ${STEP}
  return requests[n % #requests + 1]
end
function done(summary, latency)
  local errors = summary.errors
  io.write(string.format('\\n{"requests":%d,"microseconds":%d,"p50":%d,"p99":%d,"errors":%d}\\n',
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(99),
    errors.status + errors.connect + errors.read + errors.write + errors.timeout))
end
`
}

function outputOf(command: string, args: string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'inherit'] })
    let output = ''
    child.stdout.on('data', (part: Buffer) => {
      output += part.toString()
    })
    child.on('close', () => {
      const line = output.split('\n').find((some) => some.startsWith('{'))
      if (line === undefined) reject(new Error(`wrk said: ${output}`))
      else resolve(line)
    })
  })
}

function loadByAutocannon({ paths, body, ...ask }: WrkLoad): Promise<Measured> {
  let next = 0
  return load(
    {
      ...ask,
      method: 'POST',
      ...(body === undefined ? {} : { body }),
      eachRequest: (request) => {
        next += STEP
        return { ...request, path: paths[next % paths.length] ?? '' }
      },
    },
    204,
  )
}
