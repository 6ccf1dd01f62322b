/** `mayfly whisper …`: bytes that only their readers can open. */
import type { Command } from 'commander'
import { addWhisperRead } from './read.ts'
import { addWhisperSend } from './send.ts'

export function addWhisper(program: Command): void {
  const parent = program
    .command('whisper')
    .description('send and read content that only its readers can open')
  addWhisperSend(parent, 'send')
  addWhisperRead(parent)
}
