/**
 * Load with large answers. autocannon reads every byte of a body in JavaScript, which limits it to a few
 * hundred answers of 64 KiB per second. This only counts the bytes.
 */
import { connect } from 'node:net'
import type { Measured } from './load.ts'

export type BytesLoad = {
  url: string
  connections: number
  seconds: number
  /** The text of the next request. */
  request: () => string
}

const MAX_HEAD = 4096

/** Counts answers with this status and a Content-Length. Any other answer ends the measurement. */
export async function loadBytes(ask: BytesLoad, status: number): Promise<Measured> {
  const latencies: number[] = []
  const begin = performance.now()
  const end = begin + ask.seconds * 1000
  await Promise.all(
    Array.from({ length: ask.connections }, () => oneConnection(ask, { status, end, latencies })),
  )
  const seconds = (performance.now() - begin) / 1000
  latencies.sort((a, b) => a - b)
  const at = (share: number): number =>
    Math.round(latencies[Math.floor(latencies.length * share)] ?? 0)
  return {
    perSecond: Math.round(latencies.length / seconds),
    count: latencies.length,
    p50: at(0.5),
    p99: at(0.99),
    errors: 0,
  }
}

function oneConnection(
  { url, request }: BytesLoad,
  { status, end, latencies }: { status: number; end: number; latencies: number[] },
): Promise<void> {
  const { hostname, port } = new URL(url)
  return new Promise((resolve, reject) => {
    let sentAt = 0
    let head = ''
    let left = 0
    const socket = connect(Number(port), hostname)
    const next = (): void => {
      if (performance.now() > end) return void socket.end()
      head = ''
      sentAt = performance.now()
      socket.write(request())
    }
    socket.on('connect', next)
    socket.on('data', (part) => {
      if (left === 0) {
        head += part.toString('latin1', 0, Math.min(part.length, MAX_HEAD))
        const headEnd = head.indexOf('\r\n\r\n')
        if (headEnd === -1) return
        if (!head.startsWith(`HTTP/1.1 ${status} `)) {
          socket.destroy()
          return reject(new Error(`an answer was ${head.slice(0, 20)}`))
        }
        left = Number(/content-length: (\d+)/i.exec(head)?.[1]) - (part.length - headEnd - 4)
      } else left -= part.length
      if (left > 0) return
      latencies.push(performance.now() - sentAt)
      left = 0
      next()
    })
    socket.on('error', reject)
    socket.on('close', () => resolve())
  })
}
