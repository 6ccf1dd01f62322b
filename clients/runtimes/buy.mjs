/** Buys and uses every product with the packed SDK. Arguments: the module and the service's address. */
const [module, baseUrl] = process.argv.slice(2)
const { createMayfly, eventJson, simulatorWallet } = await import(module)
const mayfly = createMayfly({ baseUrl, wallet: simulatorWallet({ baseUrl }) })

const inbox = await mayfly.buyCatch({ planId: 'spark' })
await fetch(`${baseUrl}/c/${inbox.publicId}/hook`, { method: 'POST', body: '{"n":7}' })
const event = await mayfly.catch(inbox).next({ timeoutMs: 30_000 })
expect(eventJson(event)?.n === 7, 'the event is the one that was sent')
for await (const { sequence } of mayfly.catch(inbox).stream({ after: 0 })) {
  expect(sequence === 1, 'the stream has the event')
  break
}

const data = new TextEncoder().encode('secret')
const { code } = await mayfly.buyWhisper({ planId: 'spark', data, password: 'bees', readLimit: 1 })
const failed = await mayfly.readWhisper(code, 'wasps').catch((error) => error)
const opened = await failed.open('bees')
expect(new TextDecoder().decode(opened.data) === 'secret', 'the whisper opens')

const monitor = await mayfly.buyPulse({ planId: 'spark' })
await mayfly.pulse(monitor).ping()
const { state } = await mayfly.pulse(monitor).status()
expect(state === 'operational', 'the monitor was pinged')
process.stdout.write('bought\n')

function expect(isTrue, what) {
  if (!isTrue) throw new Error(`not true: ${what}`)
}
