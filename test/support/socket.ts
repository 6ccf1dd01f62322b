/** HTTP as bytes on a new connection, for requests that no client would send. */
import { connect } from 'node:net'

export type Exchanged = {
  status: number
  /** The status of each answer on the connection. */
  statuses: number[]
  headers: Headers
  /** The lines of the head, unchanged, without the first. */
  lines: string[]
  body: string
}

/** Sends these bytes and reads until the server closes the connection. */
export async function exchange(url: string, head: string, ...rest: string[]): Promise<Exchanged> {
  const answer = await sendRaw(url, head, ...rest)
  const end = answer.indexOf('\r\n\r\n')
  const [first = '', ...lines] = answer.slice(0, end).split('\r\n')
  const headers = new Headers(
    lines.map((line): [string, string] => {
      const colon = line.indexOf(':')
      return [line.slice(0, colon), line.slice(colon + 1).trim()]
    }),
  )
  return {
    status: Number(first.split(' ')[1]),
    statuses: [...answer.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status)),
    headers,
    lines,
    body: answer.slice(end + 4),
  }
}

/** Everything that arrives until the connection closes. Sends the head as Latin-1 and the rest as UTF-8. */
export function sendRaw(url: string, head: string, ...rest: string[]): Promise<string> {
  const { hostname, port } = new URL(url)
  return new Promise((resolve, reject) => {
    let answer = ''
    const socket = connect(Number(port), hostname, () => {
      socket.write(Buffer.concat([Buffer.from(head, 'latin1'), Buffer.from(rest.join(''))]))
    })
    socket.setEncoding('latin1')
    socket.on('data', (part) => {
      answer += part
    })
    socket.on('error', reject)
    socket.on('close', () => resolve(answer))
  })
}
