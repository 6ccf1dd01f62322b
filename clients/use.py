"""Buys and uses all three products with the client that openapi-python-client generates."""

import sys
from io import BytesIO
from uuid import uuid4

import httpx
from mayfly_client import AuthenticatedClient
from mayfly_client.api.catch import list_events
from mayfly_client.api.payments import buy_catch, buy_pulse, buy_whisper, poll_order
from mayfly_client.api.pulse import get_monitor, ping_monitor
from mayfly_client.api.simulator import pay_with_simulator
from mayfly_client.api.whisper import read_whisper
from mayfly_client.models import (
    CatchCapability,
    EventPage,
    PaymentQuote,
    PlanId,
    PlanSelection,
    PulseCapability,
    PulseStatus,
    SettledPayment,
    SimulatedPayment,
    WhisperCapability,
)
from mayfly_client.types import File


def client(token: str = "none") -> AuthenticatedClient:
    return AuthenticatedClient(base_url=sys.argv[1], token=token)


def paid(quote: object) -> CatchCapability | WhisperCapability | PulseCapability:
    assert isinstance(quote, PaymentQuote), quote
    pay_with_simulator.sync(client=client(), body=SimulatedPayment(bolt11=quote.bolt11))
    settled = poll_order.sync(client=client(), order_id=quote.order_id)
    assert isinstance(settled, SettledPayment), settled
    return settled.resource


spark = PlanSelection(plan_id=PlanId.SPARK)
inbox = paid(buy_catch.sync(client=client(), body=spark, idempotency_key=str(uuid4())))
assert isinstance(inbox, CatchCapability)
# The sender of a webhook needs no client. (The generator's own call fails on a body of any JSON.)
sent = httpx.post(f"{sys.argv[1]}/c/{inbox.public_id}", json={"type": "paid"})
assert sent.status_code == 204, sent
page = list_events.sync(inbox.public_id, client=client(inbox.owner_token))
assert isinstance(page, EventPage) and "paid" in page.events[0].body

secret = File(payload=BytesIO(bytes(40)), file_name="secret")
quote = buy_whisper.sync(
    client=client(),
    body=secret,
    idempotency_key=str(uuid4()),
    x_whisper_plan=PlanId.SPARK,
)
whisper = paid(quote)
assert isinstance(whisper, WhisperCapability)
read = read_whisper.sync(whisper.public_id, client=client(whisper.read_token))
assert isinstance(read, File) and read.payload.read() == bytes(40)

monitor = paid(buy_pulse.sync(client=client(), body=spark, idempotency_key=str(uuid4())))
assert isinstance(monitor, PulseCapability)
ping_monitor.sync_detailed(monitor.public_id, client=client(monitor.ping_token))
status = get_monitor.sync(monitor.public_id, client=client(monitor.owner_token))
assert isinstance(status, PulseStatus) and status.state == "operational"
