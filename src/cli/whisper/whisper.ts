/** `mayfly whisper …`: bytes that only their readers can open. */
import { group } from '../declare.ts'
import { addWhisperRead } from './read.ts'
import { whisperSend } from './send.ts'

export const addWhisper = group(
  { command: 'whisper', says: 'send and read content that only its readers can open' },
  [whisperSend('whisper send'), addWhisperRead],
)
