/** Secrets of a running server that wait for the silence of a monitor. */
import type { PulseCapability, SharedWhisper } from '../../src/client/index.ts'
import { aMonitor, ping } from '../support/pulse.ts'
import type { TestServer } from '../support/server.ts'

/** A monitor of a minute and a minute that was pinged, and a secret that waits for it. */
export async function aSwitch(server: TestServer) {
  const monitor = await aMonitor(server, 'standard')
  const owned = server.mayfly.pulse(monitor)
  await owned.update({ expectedIntervalSeconds: 60, graceSeconds: 60 })
  await ping(server, monitor)
  const { switchId } = await owned.makeSwitch()
  return { monitor, switchId, sent: await bind(server, monitor) }
}

export async function bind(
  { mayfly, pay }: TestServer,
  monitor: PulseCapability,
  terms: { revealAt?: Date } = {},
): Promise<SharedWhisper> {
  const { switchId } = await mayfly.pulse(monitor).makeSwitch()
  return mayfly.buyWhisper({
    planId: 'spark',
    data: Buffer.from('the letter'),
    revealWhen: switchId,
    onInvoice: ({ bolt11 }) => pay(bolt11),
    ...terms,
  })
}

export async function stateOf(
  { mayfly }: TestServer,
  sent: Pick<SharedWhisper, 'publicId' | 'receiptToken'>,
): Promise<string | undefined> {
  return (await mayfly.whisperReceipt(sent).status()).switch?.state
}
