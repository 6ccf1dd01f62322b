/**
 * CPU time out of Linux's /proc: what a request costs, however busy the machine is with others.
 */
import { readdirSync, readFileSync } from 'node:fs'

/** USER_HZ, which is 100 on every Linux that Node runs on. */
const MS_PER_TICK = 10

/** What a process has used until now, in milliseconds. */
export function cpuMsOf(pid: number): number {
  const { own } = ticksOf(pid) ?? { own: 0 }
  return own * MS_PER_TICK
}

/** What a process and its children have used, those included that have ended. */
export function cpuMsOfFamily(pid: number): number {
  let ticks = 0
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue
    const of = ticksOf(Number(name))
    if (Number(name) === pid) ticks += (of?.own ?? 0) + (of?.ended ?? 0)
    else if (of?.parent === pid) ticks += of.own
  }
  return ticks * MS_PER_TICK
}

function ticksOf(pid: number): { parent: number; own: number; ended: number } | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The name of the program is in parentheses and may have spaces; the state follows it.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    const at = (place: number): number => Number(fields[place])
    return { parent: at(1), own: at(11) + at(12), ended: at(13) + at(14) }
  } catch {
    // It has ended meanwhile.
    return null
  }
}
