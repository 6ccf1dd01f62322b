/** Which function answers which tool. The SDK has checked the arguments against the tool's schema. */
import type { ToolName } from '../../mcp-tools/tools.ts'
import { buyInbox, buyMonitor, type CheckInput, checkOrder, type PlanInput } from './buying.ts'
import type { Asking } from './confirm.ts'
import { type ExtendInput, extend } from './extending.ts'
import { type ReadInput, readInbox, type WaitInput, waitForWebhook } from './inbox.ts'
import { catalog, destroy, monitorStatus, type Named, type PingInput, ping } from './using.ts'
import { type ReadWhisperInput, readWhisper, type SendInput, sendWhisper } from './whispers.ts'

export function handle(tool: ToolName, args: unknown, call: Asking): Promise<object> {
  switch (tool) {
    case 'catalog':
      return catalog(call)
    case 'buy_inbox':
      return buyInbox(call, args as PlanInput)
    case 'buy_monitor':
      return buyMonitor(call, args as PlanInput)
    case 'send_whisper':
      return sendWhisper(call, args as SendInput)
    case 'extend':
      return extend(call, args as ExtendInput)
    case 'check_order':
      return checkOrder(call, args as CheckInput)
    case 'read_inbox':
      return readInbox(call, args as ReadInput)
    case 'wait_for_webhook':
      return waitForWebhook(call, args as WaitInput)
    case 'read_whisper':
      return readWhisper(call, args as ReadWhisperInput)
    case 'ping':
      return ping(call, args as PingInput)
    case 'monitor_status':
      return monitorStatus(call, args as Named)
    case 'destroy':
      return destroy(call, args as Named)
    default:
      return tool satisfies never
  }
}
