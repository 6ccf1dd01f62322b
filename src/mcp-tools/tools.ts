/** All tools that hosts are offered, few and whole. */
import { catalogTool } from './catalog.ts'
import type { ToolDefinition, Way } from './definition.ts'
import { readInboxTool, waitForWebhookTool } from './inbox.ts'
import {
  buyInboxTool,
  buyMonitorTool,
  checkOrderTool,
  extendTool,
  sendWhisperTool,
} from './purchases.ts'
import { destroyTool, monitorStatusTool, pingTool, readWhisperTool } from './using.ts'

const TOOLS = {
  catalog: catalogTool,
  buy_inbox: buyInboxTool,
  read_inbox: readInboxTool,
  wait_for_webhook: waitForWebhookTool,
  send_whisper: sendWhisperTool,
  read_whisper: readWhisperTool,
  buy_monitor: buyMonitorTool,
  extend: extendTool,
  check_order: checkOrderTool,
  ping: pingTool,
  monitor_status: monitorStatusTool,
  destroy: destroyTool,
} satisfies { [Name in string]: (way: Way) => ToolDefinition }

export type ToolName = keyof typeof TOOLS

export const TOOL_NAMES = Object.keys(TOOLS) as ToolName[]

/** The tools as a host on this way in sees them, in one order for all. */
export const toolDefinitions = (way: Way): readonly ToolDefinition<ToolName>[] =>
  TOOL_NAMES.map((name) => TOOLS[name](way))
