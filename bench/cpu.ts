/**
 * Reads CPU times and written bytes from Linux's /proc. They measure the cost of a request on a busy machine too.
 */
import { readdirSync, readFileSync } from 'node:fs'

/** USER_HZ, which is 100 on every Linux that Node runs on. */
const MS_PER_TICK = 10

/** The CPU time of a process until now, in milliseconds. */
export function cpuMsOf(pid: number): number {
  const { own } = ticksOf(pid) ?? { own: 0 }
  return own * MS_PER_TICK
}

/** The bytes that a process has made the kernel write to disks. */
export function writtenBytesOf(pid: number): number {
  return Number(/write_bytes: (\d+)/.exec(readFileSync(`/proc/${pid}/io`, 'utf8'))?.[1] ?? 0)
}

/** The CPU time of a process and its children, ended ones included. */
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
    // The program's name is in parentheses and may contain spaces. The state follows the name.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    const at = (place: number): number => Number(fields[place])
    return { parent: at(1), own: at(11) + at(12), ended: at(13) + at(14) }
  } catch {
    // The process has ended meanwhile.
    return null
  }
}
