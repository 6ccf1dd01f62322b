/**
 * Writes small MaxMind databases (MaxMind DB file format 2.0): a search tree over address bits, a
 * data section, and the metadata at the end.
 */
import { isIP } from 'node:net'

export type MmdbValue = string | number | boolean | { [name: string]: MmdbValue } | MmdbValue[]

export type Mmdb = {
  /** CIDR blocks and their data. IPv4 blocks go into an IPv6 tree as `::a.b.c.d`. */
  networks: Record<string, MmdbValue>
  ipVersion?: 4 | 6
  buildEpoch?: number
}

/** 5 June 2026. */
const BUILD_EPOCH = Date.UTC(2026, 5, 5) / 1000
const RECORD_BYTES = 3

export function mmdb({ networks, ipVersion = 6, buildEpoch = BUILD_EPOCH }: Mmdb): Buffer {
  const tree: Node[] = [[null, null]]
  const data: Buffer[] = []
  let dataBytes = 0
  for (const [block, value] of Object.entries(networks)) {
    insert(tree, bitsOf(block, ipVersion), { offset: dataBytes })
    const bytes = encode(value)
    data.push(bytes)
    dataBytes += bytes.length
  }
  const metadata = encode({
    binary_format_major_version: 2,
    binary_format_minor_version: 0,
    build_epoch: buildEpoch,
    database_type: 'Test-City',
    description: { en: 'made by a test' },
    ip_version: ipVersion,
    languages: ['en'],
    node_count: tree.length,
    record_size: 8 * RECORD_BYTES,
  })
  return Buffer.concat([
    ...tree.map((node) => encodeNode(node, tree.length)),
    Buffer.alloc(16),
    ...data,
    Buffer.from('\xab\xcd\xefMaxMind.com', 'latin1'),
    metadata,
  ])
}

/** The index of a node, the offset of a network's data, or null for an empty branch. */
type Branch = number | { offset: number } | null
type Node = [Branch, Branch]

function insert(tree: Node[], bits: number[], leaf: { offset: number }): void {
  let node = tree[0] as Node
  for (const [depth, bit] of bits.entries()) {
    if (depth === bits.length - 1) {
      node[bit] = leaf
      return
    }
    let next = node[bit] ?? null
    if (typeof next !== 'number') {
      next = tree.push([null, null]) - 1
      node[bit] = next
    }
    node = tree[next] as Node
  }
}

function bitsOf(block: string, ipVersion: 4 | 6): number[] {
  const [address = '', length] = block.split('/')
  const isIpv4 = isIP(address) === 4
  const own = isIpv4 ? address.split('.').map(Number) : ipv6Bytes(address)
  const bytes = isIpv4 && ipVersion === 6 ? [...Array.from({ length: 12 }, () => 0), ...own] : own
  const bits = bytes.flatMap((byte) => Array.from({ length: 8 }, (_, i) => (byte >> (7 - i)) & 1))
  const offset = isIpv4 && ipVersion === 6 ? 96 : 0
  return bits.slice(0, offset + Number(length ?? own.length * 8))
}

function ipv6Bytes(address: string): number[] {
  const [left = '', right = ''] = address.split('::')
  const groups = (part: string): number[] =>
    part === '' ? [] : part.split(':').map((group) => Number.parseInt(group, 16))
  const [head, tail] = [groups(left), groups(right)]
  const zeros = Array.from({ length: 8 - head.length - tail.length }, () => 0)
  return [...head, ...zeros, ...tail].flatMap((group) => [group >> 8, group & 0xff])
}

/** An empty branch is the node count. A branch with data is the offset beyond the separator. */
function encodeNode(node: Node, nodeCount: number): Buffer {
  const bytes = Buffer.alloc(2 * RECORD_BYTES)
  for (const [at, branch] of node.entries()) {
    const leaf = branch === null ? nodeCount : branch
    const record = typeof leaf === 'number' ? leaf : nodeCount + 16 + leaf.offset
    bytes.writeUIntBE(record, at * RECORD_BYTES, RECORD_BYTES)
  }
  return bytes
}

const TYPE = { string: 2, double: 3, uint32: 6, map: 7, array: 11, boolean: 14 } as const

function encode(value: MmdbValue): Buffer {
  if (typeof value === 'string') {
    const text = Buffer.from(value)
    return Buffer.concat([control(TYPE.string, text.length), text])
  }
  if (typeof value === 'boolean') return control(TYPE.boolean, value ? 1 : 0)
  if (typeof value === 'number') {
    if (Number.isInteger(value) && value >= 0) return integer(value)
    const number = Buffer.alloc(8)
    number.writeDoubleBE(value)
    return Buffer.concat([control(TYPE.double, 8), number])
  }
  if (Array.isArray(value)) {
    return Buffer.concat([control(TYPE.array, value.length), ...value.map(encode)])
  }
  const members = Object.entries(value)
  return Buffer.concat([
    control(TYPE.map, members.length),
    ...members.flatMap(([name, member]) => [encode(name), encode(member)]),
  ])
}

/** Encodes an integer in as few bytes as possible. */
function integer(value: number): Buffer {
  const hex = value === 0 ? '' : value.toString(16)
  const bytes = Buffer.from(hex.length % 2 ? `0${hex}` : hex, 'hex')
  return Buffer.concat([control(TYPE.uint32, bytes.length), bytes])
}

function control(type: number, size: number): Buffer {
  // Larger sizes have other forms, which these databases do not need.
  if (size > 284) throw new Error('too large for this writer')
  const low = size < 29 ? size : 29
  const head = type <= 7 ? [(type << 5) | low] : [low, type - 7]
  return Buffer.from(size < 29 ? head : [...head, size - 29])
}
