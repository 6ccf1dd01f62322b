/** A name server of the test's own. It answers what the test says, and may be silent. */
import { createSocket } from 'node:dgram'
import dns from 'node:dns'
import type { After } from '../support/folder.ts'
import { until } from '../support/until.ts'

/** @param addressOf the IPv4 address of a name, or null for silence. Names have no IPv6 address. */
export async function aNameServer(t: After, addressOf: (name: string) => string | null) {
  const socket = createSocket('udp4')
  const asked = new Set<string>()
  socket.on('message', (query, { port, address: peer }) => {
    const name = nameOf(query)
    asked.add(name)
    const address = addressOf(name)
    if (address !== null) socket.send(answerTo(query, name, address), port, peer)
  })
  await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve))
  const before = dns.getServers()
  const address = `127.0.0.1:${socket.address().port}`
  dns.setServers([address])
  t.after(() => {
    dns.setServers(before)
    socket.close()
  })
  return {
    address,
    /** The names that were asked for, once each. */
    get asked() {
      return [...asked]
    },
    /** Resolves when so many names have been asked for. */
    untilAsked: (count: number) =>
      until(`${count} names`, () => (asked.size >= count ? true : null)),
  }
}

/** The first question begins after the header (RFC 1035 §4.1). */
const QUESTION_AT = 12
const TYPE_A = 1

function nameOf(query: Buffer): string {
  const labels: string[] = []
  for (let at = QUESTION_AT; query[at]; at += (query[at] ?? 0) + 1) {
    labels.push(query.toString('latin1', at + 1, at + 1 + (query[at] ?? 0)))
  }
  return labels.join('.').toLowerCase()
}

function answerTo(query: Buffer, name: string, address: string): Buffer {
  const questionEnd = QUESTION_AT + name.length + 2 + 4
  const isA = query.readUInt16BE(questionEnd - 4) === TYPE_A
  const header = Buffer.from(query.subarray(0, QUESTION_AT))
  header.writeUInt16BE(0x8180, 2)
  header.writeUInt16BE(isA ? 1 : 0, 6)
  header.writeUInt16BE(0, 8)
  header.writeUInt16BE(0, 10)
  const question = query.subarray(QUESTION_AT, questionEnd)
  // The name of the question, type A, class IN, no time to live, four bytes.
  const record = Buffer.from([0xc0, QUESTION_AT, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4])
  const bytes = Buffer.from(address.split('.').map(Number))
  return Buffer.concat(isA ? [header, question, record, bytes] : [header, question])
}
