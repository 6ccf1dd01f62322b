/** `mayfly whisper …`: bytes that only their readers can open. */
import type { Command } from 'commander'
import { addWhisperAlerts } from './alerts.ts'
import { addWhisperRead } from './whisper-read.ts'
import { addWhisperDestroy, addWhisperReceipt } from './whisper-receipt.ts'
import { addWhisperSend } from './whisper-send.ts'

export function addWhisper(program: Command): void {
  const parent = program
    .command('whisper')
    .description('send and read content that only its readers can open')
  addWhisperSend(parent, 'send')
  addWhisperRead(parent)
  addWhisperReceipt(parent)
  addWhisperAlerts(parent)
  addWhisperDestroy(parent)
}
