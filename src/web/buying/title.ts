/** The tab's title, which says how far a purchase is while the buyer looks at another tab or at a wallet. */

export function showTitle(text: string): void {
  document.title = `${text} · Mayfly`
}
