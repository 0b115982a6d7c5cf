package import AccountEvents
package import HTTPClient
import JSON

/// A service of the operator's that erases on request: Standard Webhooks 1.0, in both directions.
///
/// It is sent `{"type":"account.erase", …}` with an id that stays the same until it is done (its idempotency key), and
/// answers 200 with `{"state":"erased","affected":3,"found":0}`, signed like the request under the request's id, or 202
/// with `{"state":"in-progress"}` to be asked again. docs/erasure.md describes both.
package final class HTTPTarget: ErasureTarget {
  private let name: String
  private let url: HTTPClientURL
  private let secret: WebhookSecret
  private let deadline: Duration
  private let client: HTTPClient
  private let now: @Sendable () -> Timestamp

  /// How far the service's clock and ours may lie apart (the specification's own example of a tolerance).
  private static let tolerance = Duration.seconds(300)

  /// The service at `url`. `name` is the target's, and part of the id of what is sent.
  package init(
    name: String, url: HTTPClientURL, secret: WebhookSecret, deadline: Duration, client: HTTPClient,
    now: @escaping @Sendable () -> Timestamp
  ) {
    (self.name, self.url, self.secret) = (name, url, secret)
    (self.deadline, self.client, self.now) = (deadline, client, now)
  }

  /// A service is not asked what it holds.
  package func count(_ order: ErasureOrder) async throws(ErasureFailure) -> Int? { nil }

  /// A service is not asked before there is something to do.
  package func check() async throws(ErasureFailure) {}

  /// Sends the order, and believes a signed answer only.
  package func erase(_ order: ErasureOrder) async throws(ErasureFailure) -> ErasureResult {
    // The specification advises against full stops in an id, which it puts between the parts of what is signed. But an id
    // must not change while its erasure is open, and this one can be taken apart in one way: no target's name has one.
    let id = "\(order.event.text).\(name)"
    let seconds = now().milliseconds / 1000
    let body = order.json(sentAt: seconds).bytes
    let response: HTTPClientResponse
    do throws(HTTPClientError) {
      response = try await client.send(
        .post(
          body, to: url,
          headers: [
            ("Content-Type", "application/json"), ("webhook-id", id), ("webhook-timestamp", String(seconds)),
            ("webhook-signature", secret.signature(id: id, seconds: seconds, body: body)),
          ], isRepeatable: true, within: deadline, maximumBodySize: ErasureAnswer.largest))
    } catch {
      throw ErasureFailure(error.isRetriable ? .unavailable : .refused, "\(error)")
    }
    switch response.status {
    case 200, 202: break
    case 408, 409, 425: throw ErasureFailure(.notNow, "status \(response.status)")  // of this request alone
    // What a gateway says of a service that does not answer.
    case 502, 504: throw ErasureFailure(.unavailable, "status \(response.status)", retryAfter: response.retryAfter)
    case 429, 500...599:
      throw ErasureFailure(.notNow, "status \(response.status)", retryAfter: response.retryAfter)
    default: throw ErasureFailure(.refused, "status \(response.status)")
    }
    let proof = try proof(of: response, id: id)
    guard let answer = ErasureAnswer(response.body) else { throw ErasureFailure(.refused, "the answer is malformed") }
    guard response.status == 200, answer.state == .erased else {
      return ErasureResult(.inProgress(retryAfter: response.retryAfter), affected: nil, found: nil, detail: "")
    }
    if let found = answer.found, found > 0 { throw ErasureFailure(.remaining, "the service has found \(found)") }
    return ErasureResult(.erased, affected: answer.affected, found: answer.found, detail: proof)
  }

  /// The signed answer as it is kept, so that its signature can be verified again: time, signature, body.
  private func proof(of response: HTTPClientResponse, id: String) throws(ErasureFailure) -> String {
    guard let signatures = response.header("webhook-signature"), response.header("webhook-id") == id,
      let seconds = response.header("webhook-timestamp").flatMap({ Int64($0) }), let time = Timestamp(seconds: seconds)
    else { throw ErasureFailure(.unsigned, "the answer has no signature of this request's id") }
    guard secret.verifies(signatures, id: id, seconds: seconds, body: response.body) else {
      throw ErasureFailure(.unsigned, "the answer's signature is wrong")
    }
    let distance = now() - time
    guard (.zero - Self.tolerance)...Self.tolerance ~= distance else {
      throw ErasureFailure(.unsigned, "the answer's time is not now")
    }
    return "\(seconds) \(signatures) \(String(decoding: response.body, as: UTF8.self))"
  }
}

extension HTTPClientResponse {
  /// What the service asks for in seconds: at least one, an hour at most. A date is not looked at: it would need the
  /// service's clock and ours.
  fileprivate var retryAfter: Duration? {
    guard let text = header("Retry-After"), 1...9 ~= text.utf8.count, text.utf8.allSatisfy({ 0x30...0x39 ~= $0 }),
      let seconds = Int64(text)
    else { return nil }
    return .seconds(min(max(seconds, 1), 3600))
  }
}

extension ErasureOrder {
  fileprivate func json(sentAt seconds: Int64) -> JSONValue {
    [
      "type": "account.erase", "timestamp": .string("\(Timestamp(seconds: seconds) ?? occurredAt)"),
      "data": [
        "event": .string(event.text), "reason": .string(reason), "team": .string(account.team.text),
        "sub": .string(account.subject.text), "event_time": .integer(occurredAt.milliseconds),
      ],
    ]
  }
}
