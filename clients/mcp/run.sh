#!/usr/bin/env bash
# npm run contract:mcp: starts a server and drives /mcp with the protocol's own conformance suite (2025-11-25) and
# with its inspector, in both revisions: the inspector lists the tools, checks their schemas for other hosts, buys an
# inbox, reads it and extends it. Installs into .cache/mcp.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

here=$PWD/clients/mcp
tools=$PWD/.cache/mcp
mkdir -p "$tools"
cp "$here"/package.json "$here"/package-lock.json "$tools"
export PATH=$PWD/node_modules/.bin:$PATH
npm ci --prefix "$tools" --ignore-scripts --no-fund --no-audit --loglevel error

. scripts/served.sh

# The other scenarios of the suite call tools, prompts and resources that only a test server has.
for scenario in server-initialize ping tools-list dns-rebinding-protection; do
  "$tools/node_modules/.bin/conformance" server --url "$url/mcp" --scenario "$scenario" | tail -2
done

export MCP_CATALOG_PATH=$work/inspector.json
inspect() {
  "$tools/node_modules/.bin/mcp-inspector" --cli "$url/mcp" --transport http --protocol-era "$era" --format json "$@"
}
# The value at a path of the JSON on stdin, such as `.result._meta["a/b"]`.
value() { node -e "let value = JSON.parse(fs.readFileSync(0)); console.log((value.result ?? value)$1)"; }

for era in legacy modern; do
  inspect --method tools/list --strict >"$work/tools"
  inspect --method tools/call --tool-name buy_inbox --tool-arg planId=spark >"$work/asked"
  order=$(value .structuredContent.quote.orderId <"$work/asked")
  bolt11=$(value .structuredContent.quote.bolt11 <"$work/asked")
  curl --silent --fail --output "$work/paid" "$url/simulator/pay" \
    --header 'Content-Type: application/json' --data "{\"bolt11\":\"$bolt11\"}"
  inspect --method tools/call --tool-name check_order --tool-arg "orderId=$order" >"$work/bought"
  inbox=$(value .structuredContent.bought.publicId <"$work/bought")
  owner=$(value .structuredContent.bought.ownerToken <"$work/bought")
  curl --silent --fail --data '{"ok":true}' "$url/c/$inbox"
  inspect --method tools/call --tool-name wait_for_webhook --tool-arg "publicId=$inbox" \
    --tool-arg "token=$owner" >"$work/read"
  test "$(value '.content.map(({ text }) => JSON.parse(text).webhooks[0].body.untrustedText).join()' <"$work/read")" = '{"ok":true}'
  inspect --method tools/call --tool-name extend --tool-arg "publicId=$inbox" --tool-arg planId=spark \
    --tool-arg "token=$owner" >"$work/asked"
  order=$(value .structuredContent.quote.orderId <"$work/asked")
  bolt11=$(value .structuredContent.quote.bolt11 <"$work/asked")
  curl --silent --fail --output "$work/paid" "$url/simulator/pay" \
    --header 'Content-Type: application/json' --data "{\"bolt11\":\"$bolt11\"}"
  inspect --method tools/call --tool-name check_order --tool-arg "orderId=$order" >"$work/extended"
  value .structuredContent.extended.expiresAt <"$work/extended" >"$work/end"
  echo "the inspector bought, read and extended an inbox ($era)"
done
