/** The purchases of this browser that are not finished, and the way on with each. */
import { termsWithPrice } from '../lib/terms.ts'
import { adopt, isPaid, type Unfinished } from '../lib/unfinished.ts'
import { Button } from '../ui/button.tsx'
import { Notice } from '../ui/show.tsx'

/** @param onOpen goes on with it in this tab. */
export function Others<Kind extends Unfinished>({
  list,
  onOpen,
}: {
  list: readonly Kind[]
  onOpen: (purchase: Kind) => unknown
}) {
  function open(purchase: Kind): void {
    adopt(purchase)
    onOpen(purchase)
  }
  return (
    <>
      {list.map((each) => (
        <Notice
          key={each.idempotencyKey}
          kind="warn"
          action={<Button onClick={() => open(each)}>Continue</Button>}
        >
          {`${wordsOf(each)}: ${each.extends === undefined ? '' : 'extension, '}${termsWithPrice(each)}.`}
        </Notice>
      ))}
    </>
  )
}

function wordsOf(purchase: Unfinished): string {
  if (!isPaid(purchase)) return 'You have an unfinished purchase'
  return purchase.product === 'whisper'
    ? 'You have not copied the code of a paid secret'
    : 'You have not saved the key of a paid purchase'
}
