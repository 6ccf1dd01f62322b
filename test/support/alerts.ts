/** Monitors of a running server that tell a receiver. */
import type { After } from './folder.ts'
import { aMonitor, type Owner } from './pulse.ts'
import { aReceiver } from './receiver.ts'
import { startServer, type TestServer } from './server.ts'

export type AlertsSet = {
  destinations: {
    id: string
    format: string
    host: string
    state: string
    secret: string | null
    test: string | null
  }[]
}

/** A server whose alerts may go to one receiver, and a monitor. */
export async function aWorld(t: After, environment: Record<string, string> = {}) {
  const receiver = await aReceiver(t)
  const server = await startServer(t, {
    MAYFLY_ALLOWED_HOSTS: receiver.host,
    ...environment,
  })
  const monitor = await aMonitor(server)
  return { receiver, server, monitor }
}

/** A request of the owner to the alerts of a monitor. */
export async function alerts(
  { url }: TestServer,
  { publicId, ownerToken }: Owner,
  { method = 'GET', body }: { method?: string; body?: unknown } = {},
) {
  const response = await fetch(`${url}/api/pulse/${publicId}/alerts`, {
    method,
    headers: {
      authorization: `Bearer ${ownerToken}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  return { status: response.status, body: text === '' ? null : JSON.parse(text) }
}

/** Sets the destinations. */
export const put = (server: TestServer, monitor: Owner, destinations: unknown[]) =>
  alerts(server, monitor, { method: 'PUT', body: { destinations } })
