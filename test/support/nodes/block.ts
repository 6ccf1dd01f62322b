/** Makes blocks, because btcd can pay their reward only to an address that is set before its start. */
import { createHash, randomBytes } from 'node:crypto'

export type BlockPlan = {
  version: number
  previousHash: string
  height: number
  /** In unix seconds. */
  time: number
  coinbaseValue: bigint
  transactions: { txid: string; hash: string; data: string }[]
  /** The scriptPubKey that gets the coinbase. */
  script: Buffer
}

const BITS = 0x207fffff
/** OP_TRUE, which anybody can spend. */
export const NOBODY = Buffer.from('51', 'hex')

/** Mines the block. Returns it with its hash. */
export function mineBlock(plan: BlockPlan): { hash: string; block: string } {
  const reserved = Buffer.alloc(32)
  const coinbase = coinbaseOf(plan, reserved)
  const root = merkleRoot([
    sha256d(coinbase.bare),
    ...plan.transactions.map((each) => reversed(each.txid)),
  ])
  const header = Buffer.concat([
    u32(plan.version),
    reversed(plan.previousHash),
    root,
    u32(plan.time),
    u32(BITS),
    u32(0),
  ])
  const hash = grind(header)
  const block = Buffer.concat([
    header,
    varint(plan.transactions.length + 1),
    coinbase.full,
    ...plan.transactions.map((each) => Buffer.from(each.data, 'hex')),
  ])
  return { hash: hash.reverse().toString('hex'), block: block.toString('hex') }
}

/** Changes the nonce until the hash is valid. On regtest, every second hash is. */
function grind(header: Buffer): Buffer {
  for (let nonce = 0; ; nonce++) {
    header.writeUInt32LE(nonce, 76)
    const hash = sha256d(header)
    if ((hash[31] ?? 0xff) < 0x7f) return hash
  }
}

function coinbaseOf(plan: BlockPlan, reserved: Buffer): { bare: Buffer; full: Buffer } {
  const witnessRoot = merkleRoot([
    Buffer.alloc(32),
    ...plan.transactions.map((each) => reversed(each.hash)),
  ])
  // BIP 141: the commitment to all witnesses.
  const commitment = Buffer.concat([
    Buffer.from('6a24aa21a9ed', 'hex'),
    sha256d(Buffer.concat([witnessRoot, reserved])),
  ])
  // BIP 34: the height comes first. The random bytes make the coinbases of one height differ.
  const signature = Buffer.concat([push(scriptNumber(plan.height)), push(randomBytes(8))])
  const inputs = Buffer.concat([
    Buffer.from([1]),
    Buffer.alloc(32),
    u32(0xffffffff),
    varint(signature.length),
    signature,
    u32(0xffffffff),
  ])
  const outputs = Buffer.concat([
    Buffer.from([2]),
    u64(plan.coinbaseValue),
    varint(plan.script.length),
    plan.script,
    u64(0n),
    varint(commitment.length),
    commitment,
  ])
  const witness = Buffer.concat([Buffer.from([1, 32]), reserved])
  return {
    bare: Buffer.concat([u32(1), inputs, outputs, u32(0)]),
    full: Buffer.concat([u32(1), Buffer.from([0, 1]), inputs, outputs, witness, u32(0)]),
  }
}

/** The scriptPubKey of a SegWit address of our own node. Ignores the checksum. */
export function segwitScript(address: string): Buffer {
  const alphabet = 'qpzry9x8gf2tvdw0s3jn54khce6mua7l'
  const [version = 0, ...words] = [...address.slice(address.lastIndexOf('1') + 1, -6)].map(
    (digit) => alphabet.indexOf(digit),
  )
  const program: number[] = []
  let value = 0
  let bits = 0
  for (const word of words) {
    value = ((value << 5) | word) & 0xfff
    bits += 5
    if (bits < 8) continue
    bits -= 8
    program.push((value >> bits) & 0xff)
  }
  const opcode = version === 0 ? 0 : 0x50 + version
  return Buffer.concat([Buffer.from([opcode]), push(Buffer.from(program))])
}

function merkleRoot(leaves: Buffer[]): Buffer {
  let level = leaves
  while (level.length > 1) {
    level = level.flatMap((left, i) =>
      i % 2 ? [] : [sha256d(Buffer.concat([left, level[i + 1] ?? left]))],
    )
  }
  return level[0] ?? Buffer.alloc(32)
}

function scriptNumber(value: number): Buffer {
  const bytes: number[] = []
  for (let rest = value; rest > 0; rest = Math.floor(rest / 256)) bytes.push(rest % 256)
  if ((bytes.at(-1) ?? 0) & 0x80) bytes.push(0)
  return Buffer.from(bytes)
}

function sha256d(bytes: Buffer): Buffer {
  const once = createHash('sha256').update(bytes).digest()
  return createHash('sha256').update(once).digest()
}

function reversed(hash: string): Buffer {
  return Buffer.from(hash, 'hex').reverse()
}

function push(bytes: Buffer): Buffer {
  return Buffer.concat([Buffer.from([bytes.length]), bytes])
}

function varint(value: number): Buffer {
  if (value < 0xfd) return Buffer.from([value])
  const bytes = Buffer.from([0xfd, 0, 0])
  bytes.writeUInt16LE(value, 1)
  return bytes
}

function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(value >>> 0)
  return bytes
}

function u64(value: bigint): Buffer {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64LE(value)
  return bytes
}
