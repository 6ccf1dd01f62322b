/** Names the script that can see a secret, with its address, its digest and its sources. */
import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { hex } from '../../lib/bytes.ts'
import { Button } from '../ui/button.tsx'

const SOURCES: [path: string, does: string][] = [
  ['protocol/whisper-envelope.ts', 'makes the key, pads and encrypts'],
  ['protocol/whisper-code.ts', 'writes the share code, with the key in it'],
  ['client/whisper.ts', 'sends the encrypted bytes, and nothing else'],
  ['web/whisper/draft.tsx', 'has the text, the file and the password'],
  ['web/whisper/write.tsx', 'leads from the form to the code'],
  ['web/lib/unfinished.ts', 'keeps the key in this browser until you have the code'],
  ['web/whisper/share.tsx', 'shows the code and the password'],
]

export function Files() {
  const script = useSignal<{ path: string; digest: string } | 'failed' | null>(null)
  async function load(): Promise<void> {
    try {
      // This file is bundled into the one script of the page. The browser has it in its cache.
      const { href, pathname } = new URL(import.meta.url)
      const bytes = await (await fetch(href)).arrayBuffer()
      const digest = await crypto.subtle.digest('SHA-256', bytes)
      script.value = { path: pathname, digest: hex(new Uint8Array(digest)) }
    } catch {
      script.value = 'failed'
    }
  }
  useEffect(() => void load(), [])
  const shown = script.value
  if (shown === null) return <p class="quiet">Loading…</p>
  if (shown === 'failed') {
    return (
      <div class="row">
        The script could not be loaded. <Button onClick={load}>Try again</Button>
      </div>
    )
  }
  return (
    <div class="stack tight small">
      <p>This page runs one readable script, served only from this site. Compare its SHA-256:</p>
      <p>
        <a href={shown.path}>{shown.path}</a>
        <br />
        <code class="digest">{shown.digest}</code>
      </p>
      <p>These files in it see the secret:</p>
      <ul class="files">
        {SOURCES.map(([path, does]) => (
          <li key={path}>
            <code>{path}</code> {does}.
          </li>
        ))}
      </ul>
    </div>
  )
}
