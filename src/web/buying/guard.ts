/** Asks before a tab is closed that would lose something. */

/** How long a link may take to hand over to another program. */
const HAND_OVER_MS = 1_000

let isHandingOver = false

/** Asks before the tab is closed or left while `isAtStake` returns true. */
export function guardTab(isAtStake: () => boolean): void {
  addEventListener('beforeunload', (event) => {
    if (isAtStake() && !isHandingOver) event.preventDefault()
  })
}

/**
 * Call it when a link to another program is clicked, such as `lightning:`. Browsers ask the guards of the tab for
 * these too, though the page stays.
 */
export function handOver(): void {
  isHandingOver = true
  setTimeout(() => {
    isHandingOver = false
  }, HAND_OVER_MS)
}
