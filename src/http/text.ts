/** Plain text at a fixed address, such as /llms.txt. */
import type { App } from './app.ts'

/** @param text made once, at the first request: by then the public address is known. */
export function mountText(app: App, path: string, text: () => string): void {
  let served = ''
  app.get(path, async (_request, reply) => {
    served ||= text()
    return reply
      .header('cache-control', 'public, max-age=300')
      .header('access-control-allow-origin', '*')
      .type('text/plain; charset=utf-8')
      .send(served)
  })
}
