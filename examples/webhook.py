"""Buys an inbox, waits for a webhook and reads it, knowing nothing but the address of /openapi.json."""
import json, sys, time, urllib.error, urllib.request, uuid  # noqa: E401
def ask(url, data=None, method=None, headers={}):
    headers = {"content-type": "application/json", **headers}
    body = None if data is None else json.dumps(data).encode()
    try: answer = urllib.request.urlopen(urllib.request.Request(url, body, headers, method=method))
    except urllib.error.HTTPError as refusal: answer = refusal  # the body of a 402 is the quote
    return answer.status, json.loads(answer.read() or "null")
document = ask(sys.argv[1])[1]
found = {o["operationId"]: (m.upper(), p) for p, ms in document["paths"].items() for m, o in ms.items()}
def call(name, data=None, headers={}, query="", **names):
    return ask(document["servers"][0]["url"] + found[name][1].format(**names) + query, data, found[name][0], headers)
quote = call("buyCatch", {"planId": "spark"}, {"idempotency-key": str(uuid.uuid4())})[1]
call("payWithSimulator", {"bolt11": quote["bolt11"]})  # elsewhere, any Lightning wallet pays it
while (paid := call("pollOrder", orderId=quote["orderId"]))[0] == 402: time.sleep(1)
inbox = paid[1]["resource"]
call("sendToInbox", {"type": "paid"}, publicId=inbox["publicId"])  # elsewhere, the sender of webhooks
owner = {"authorization": "Bearer " + inbox["ownerToken"]}
while not (page := call("listEvents", None, owner, "?after=0&wait=30", publicId=inbox["publicId"])[1])["events"]: pass
print(page["events"][0]["method"], page["events"][0]["body"])
