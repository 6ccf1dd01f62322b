"""Buys inboxes and monitors by one URL with pympp and l402-requests, which know an address and a wallet.

The wallet pays at the simulator. Each buys with its answer, and with its answer lost after the payment.
"""

import asyncio
import sys

import httpx
from l402_requests import L402Client, WalletBase
from mpp import Challenge, Credential
from mpp.client import ClientMethod, CredentialParams, Method, Mpp, PaymentTransport
from mpp.errors import PaymentOutcomeUnknownError
from pydantic import BaseModel

URL = sys.argv[1]
CATCH, PULSE = f"{URL}/api/buy/catch/spark", f"{URL}/api/buy/pulse/spark"
paid: list[str] = []


def pay(bolt11: str) -> str:
    paid.append(bolt11)
    return httpx.post(f"{URL}/simulator/pay", json={"bolt11": bolt11}).json()["preimage"]


def check(answer: httpx.Response, payments: int = 1) -> None:
    """It was delivered for this many payments, and works."""
    assert answer.status_code == 200, answer.text
    bought = answer.json()["resource"]
    owner = {"authorization": f"Bearer {bought['ownerToken']}"}
    status = httpx.get(f"{URL}/api/{bought['product']}/{bought['publicId']}", headers=owner)
    assert status.status_code == 200, status.text
    assert len(paid) == payments, paid
    paid.clear()


class Request(BaseModel):
    amount: str


class Payload(BaseModel):
    preimage: str


async def credential(params: CredentialParams) -> str:
    challenge: Challenge = params.challenge
    preimage = pay(challenge.request["methodDetails"]["invoice"])
    return Credential(challenge=challenge.to_echo(), payload={"preimage": preimage}).to_authorization()


# pympp brings no Lightning; this is the method as anyone would write it.
charge = Method(name="lightning", intent="charge", request_model=Request, payload_model=Payload)
lightning = ClientMethod(method=charge, create_credential=credential)


def lose(request: httpx.Request, answer: httpx.Response) -> httpx.Response:
    """Loses the answer to a request with a credential, which the server has sent."""
    if "authorization" in request.headers:
        raise httpx.ReadError("the answer is lost")
    return answer


class LosingTransport(httpx.HTTPTransport):
    def handle_request(self, request: httpx.Request) -> httpx.Response:
        return lose(request, super().handle_request(request))


class AsyncLosingTransport(httpx.AsyncHTTPTransport):
    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        return lose(request, await super().handle_async_request(request))


async def buy_with_pympp() -> None:
    async with Mpp(methods=[lightning], allowed_origins=[URL]) as mpp:
        check(await mpp.fetch(CATCH))
        check(await mpp.fetch(PULSE, method="POST", json={}))
    losing = PaymentTransport([lightning], inner=AsyncLosingTransport())
    async with httpx.AsyncClient(transport=losing) as client:
        try:
            await client.get(CATCH)
            raise AssertionError("the answer was lost")
        except PaymentOutcomeUnknownError as unknown:
            assert unknown.credential is not None
            again = {"authorization": unknown.credential.to_authorization()}
            check(httpx.get(CATCH, headers=again))


class Simulated(WalletBase):
    async def pay_invoice(self, bolt11: str) -> str:
        return pay(bolt11)


def buy_with_l402_requests() -> None:
    for address in (CATCH, f"{PULSE}/l402"):
        client = L402Client(wallet=Simulated())
        check(client.get(address))
        # It keeps the credential, and what that bought was used: it pays again and gets another one.
        check(client.get(address))
        losing = L402Client(wallet=Simulated(), transport=LosingTransport())
        try:
            losing.get(address)
            raise AssertionError("the answer was lost")
        except httpx.ReadError:
            losing._httpx_kwargs.pop("transport")
            check(losing.get(address))


asyncio.run(buy_with_pympp())
buy_with_l402_requests()
