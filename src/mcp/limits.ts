import type { Limit } from '../http/limits.ts'

/**
 * Requests to `/mcp`, by client: listing tools costs the service as much as a call. What a call does is limited
 * as over HTTP besides.
 */
export const MCP_LIMIT: Limit = { name: 'mcp', perMinute: 240, burst: 120 }
