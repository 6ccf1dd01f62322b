/** The states of a switch, for the server and its clients. */

/** `waiting` for the first ping after the purchase, `armed`, `open` for good, or `dead`: it never opens. */
export const SWITCH_STATES = ['waiting', 'armed', 'open', 'dead'] as const
export type SwitchState = (typeof SWITCH_STATES)[number]
