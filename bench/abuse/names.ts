/**
 * Names that strangers choose, on a name server that never answers: whoever tests alerts to them must not keep
 * anybody else's alerts from being sent.
 */
import { createSocket } from 'node:dgram'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Attack } from './attacks.ts'
import { fetchFrom, mayflyFrom, networkAddress, pause, pay, type Target } from './target.ts'

/** As many monitors as 84 sats buy, with the most destinations each. */
const MONITORS = 84
const DESTINATIONS = 3
const VICTIM = 5_000

type Monitor = Awaited<ReturnType<typeof buyMonitor>>

let monitors: Monitor[] = []
let receiver = ''

export const silentNames: Attack = {
  name: '10 names that nobody answers for',
  async setUp(signal) {
    const names = createSocket('udp4')
    await new Promise<void>((resolve) => names.bind(0, '127.0.0.1', resolve))
    const server = createServer((_request, response) => void response.writeHead(204).end())
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    receiver = `localhost:${(server.address() as AddressInfo).port}`
    signal.addEventListener('abort', () => {
      names.close()
      server.closeAllConnections()
      server.close()
    })
    const servers = JSON.stringify([`127.0.0.1:${names.address().port}`])
    const ask = `import dns from 'node:dns'; dns.setServers(${servers})`
    return {
      MAYFLY_ALLOWED_HOSTS: receiver,
      NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(ask)}`,
    }
  },
  async prepare(target) {
    monitors = []
    for (let n = 0; n < MONITORS; n++) monitors.push(await buyMonitor(target, networkAddress(n)))
    return []
  },
  async run(target) {
    const attacks = monitors.map((monitor, n) =>
      setAlerts(target, monitor, {
        address: networkAddress(n),
        urls: Array.from({ length: DESTINATIONS }, (_, i) => `https://n${i}.m${n}.silent.com/x`),
      }),
    )
    let [tried, done] = [0, 0]
    let longestMs = 0
    for (let n = VICTIM; !target.signal.aborted; n++) {
      const address = networkAddress(n)
      const victim = await buyMonitor(target, address)
      tried++
      const begin = performance.now()
      const urls = [`http://${receiver}/hook/${n}`]
      const outcomes = await setAlerts(target, victim, { address, urls })
      if (outcomes[0] === '2xx') done++
      longestMs = Math.max(longestMs, performance.now() - begin)
      if (tried === 20) break
      await pause(250, target.signal)
    }
    const note = `${done} of ${tried} alerts to a name of the system, the longest ${longestMs.toFixed(0)} ms`
    if (done < tried) target.fail(note)
    else target.note(note)
    await Promise.all(attacks)
  },
}

function buyMonitor({ url }: Target, address: string) {
  return mayflyFrom(url, address).buyPulse({
    planId: 'spark',
    onInvoice: ({ bolt11 }) => pay(url, bolt11),
  })
}

/** The outcomes of the tests. */
async function setAlerts(
  { url, signal }: Target,
  { publicId, ownerToken }: Monitor,
  { address, urls }: { address: string; urls: string[] },
): Promise<string[]> {
  const answer = await fetchFrom(address)(`${url}/api/pulse/${publicId}/alerts`, {
    method: 'PUT',
    headers: { authorization: `Bearer ${ownerToken}`, 'content-type': 'application/json' },
    body: JSON.stringify({ destinations: urls.map((one) => ({ url: one, format: 'slack' })) }),
    signal,
  })
  if (answer.status !== 200) return [`HTTP ${answer.status}`]
  const { destinations } = (await answer.json()) as { destinations: { test: string }[] }
  return destinations.map(({ test }) => test)
}
