//! LDK Node, driven over stdin and stdout: a line of JSON for each call, `{"id", "method", …}`, and one for each answer,
//! `{"id", "result"}` or `{"id", "error"}`. `ldk-wallet FOLDER RPC_PORT RPC_USER RPC_PASSWORD LISTEN_PORT`. It ends with
//! its stdin.

use std::collections::HashMap;
use std::io::{stdin, stdout, BufRead, Write};
use std::str::FromStr;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use ldk_node::bitcoin::hashes::{sha256, Hash};
use ldk_node::bitcoin::secp256k1::PublicKey;
use ldk_node::bitcoin::Network;
use ldk_node::lightning::ln::msgs::SocketAddress;
use ldk_node::lightning_invoice::{Bolt11Invoice, Bolt11InvoiceDescription, Description};
use ldk_node::payment::{PaymentDirection, PaymentKind, PaymentStatus};
use ldk_node::{Builder, Event, Node};
use serde_json::{json, Value};

type Failure = Box<dyn std::error::Error + Send + Sync>;
/// How each payment that was sent has ended, by its hash.
type Ended = Arc<(Mutex<HashMap<String, Result<String, String>>>, Condvar)>;

fn main() -> Result<(), Failure> {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let [folder, rpc_port, user, password, port] = &given[..] else { panic!("five arguments") };
    let mut builder = Builder::new();
    builder.set_network(Network::Regtest);
    builder.set_storage_dir_path(folder.clone());
    builder.set_chain_source_bitcoind_rpc(
        "127.0.0.1".to_string(),
        rpc_port.parse()?,
        user.clone(),
        password.clone(),
    );
    // Without an alias and an address it refuses channels that are announced.
    builder.set_listening_addresses(vec![SocketAddress::from_str(&format!("127.0.0.1:{port}"))
        .map_err(|_| "the address")?])?;
    builder.set_node_alias("ldk".to_string())?;
    let node = Arc::new(builder.build()?);
    node.start()?;
    let ended: Ended = Arc::default();
    follow(node.clone(), ended.clone());
    for line in stdin().lock().lines() {
        let asked: Value = serde_json::from_str(&line?)?;
        let (node, ended) = (node.clone(), ended.clone());
        std::thread::spawn(move || {
            let told = match answer(&node, &ended, &asked) {
                Ok(result) => json!({ "id": asked["id"], "result": result }),
                Err(error) => json!({ "id": asked["id"], "error": error.to_string() }),
            };
            let mut out = stdout().lock();
            let _ = writeln!(out, "{told}").and_then(|()| out.flush());
        });
    }
    node.stop()?;
    Ok(())
}

fn follow(node: Arc<Node>, ended: Ended) {
    std::thread::spawn(move || loop {
        let end = match node.wait_next_event() {
            Event::PaymentSuccessful { payment_hash, payment_preimage: Some(preimage), .. } => {
                Some((payment_hash.to_string(), Ok(preimage.to_string())))
            }
            Event::PaymentFailed { payment_hash: Some(hash), reason, .. } => {
                Some((hash.to_string(), Err(format!("{reason:?}"))))
            }
            _ => None,
        };
        if let Some((hash, outcome)) = end {
            ended.0.lock().unwrap().insert(hash, outcome);
            ended.1.notify_all();
        }
        let _ = node.event_handled();
    });
}

fn answer(node: &Node, ended: &Ended, asked: &Value) -> Result<Value, Failure> {
    let text = |name: &str| asked[name].as_str().ok_or(format!("{name} is missing"));
    let number = |name: &str| asked[name].as_u64().ok_or(format!("{name} is missing"));
    match text("method")? {
        "info" => {
            let usable = node.list_channels().into_iter().filter(|channel| channel.is_usable);
            let usable: Vec<_> = usable.collect();
            Ok(json!({
                "nodeId": node.node_id().to_string(),
                "height": node.status().current_best_block.height,
                "channels": usable.len(),
                "outboundMsat": usable.iter().map(|one| one.outbound_capacity_msat).sum::<u64>(),
                "onchainSats": node.list_balances().spendable_onchain_balance_sats,
            }))
        }
        "address" => Ok(json!(node.onchain_payment().new_address()?.to_string())),
        "sync" => Ok(json!(node.sync_wallets()?)),
        "connect" => {
            let address = SocketAddress::from_str(text("address")?).map_err(|_| "the address")?;
            node.connect(PublicKey::from_str(text("nodeId")?)?, address, true)?;
            Ok(json!(null))
        }
        // Waits for the end, and tells the preimage.
        "pay" => {
            let invoice = Bolt11Invoice::from_str(text("bolt11")?).map_err(|e| format!("{e:?}"))?;
            let hash = invoice.payment_hash().to_string();
            ended.0.lock().unwrap().remove(&hash);
            node.bolt11_payment().send(&invoice, None)?;
            let (known, news) = (&ended.0, &ended.1);
            let (known, _) = news
                .wait_timeout_while(known.lock().unwrap(), Duration::from_secs(60), |known| {
                    !known.contains_key(&hash)
                })
                .unwrap();
            match known.get(&hash) {
                Some(Ok(preimage)) => Ok(json!(preimage)),
                Some(Err(reason)) => Err(reason.clone().into()),
                None => Err("still under way".into()),
            }
        }
        // With `metadata`, the invoice commits to its hash, as LNURL-pay wants.
        "invoice" => {
            let description = match asked["metadata"].as_str() {
                Some(metadata) => Bolt11InvoiceDescription::Hash(ldk_node::lightning_invoice::Sha256(
                    sha256::Hash::hash(metadata.as_bytes()),
                )),
                None => Bolt11InvoiceDescription::Direct(Description::new(String::new())?),
            };
            let invoice = node.bolt11_payment().receive(
                number("amountMsat")?,
                &description,
                number("expirySeconds")? as u32,
            )?;
            Ok(json!({ "bolt11": invoice.to_string(), "paymentHash": invoice.payment_hash().to_string() }))
        }
        // A payment in this direction, by its hash: its state, and its preimage once it succeeded.
        "payment" => {
            let direction = match text("direction")? {
                "in" => PaymentDirection::Inbound,
                _ => PaymentDirection::Outbound,
            };
            let hash = text("paymentHash")?;
            let found = node.list_payments_with_filter(|payment| {
                payment.direction == direction
                    && matches!(&payment.kind, PaymentKind::Bolt11 { hash: its, .. } if its.to_string() == hash)
            });
            let Some(payment) = found.first() else { return Ok(json!(null)) };
            let PaymentKind::Bolt11 { preimage, .. } = &payment.kind else { return Ok(json!(null)) };
            let is_settled = payment.status == PaymentStatus::Succeeded;
            Ok(json!({
                "status": format!("{:?}", payment.status),
                "isSettled": is_settled,
                "amountMsat": payment.amount_msat,
                "preimage": if is_settled { preimage.map(|preimage| preimage.to_string()) } else { None },
            }))
        }
        other => Err(format!("no method {other}").into()),
    }
}
