import AccountEvents
package import HTTPClient

/// Apple's keys endpoint, over TLS: `GET https://appleid.apple.com/auth/keys`.
package struct AppleKeysEndpoint: AppleKeysSource {
  private let client: HTTPClient
  private let url: HTTPClientURL
  private let deadline: Duration

  /// An endpoint that is given `deadline` for a whole answer. The address is Apple's, or somebody else's in a rehearsal.
  package init(_ url: HTTPClientURL, client: HTTPClient, deadline: Duration) {
    (self.url, self.client, self.deadline) = (url, client, deadline)
  }

  package func fetch() async throws(AppleKeysFailure) -> AppleKeysAnswer {
    let request = HTTPClientRequest.get(
      url, headers: [("Accept", "application/json")], within: deadline, maximumBodySize: AppleKeySet.maximumSize)
    let answer: HTTPClientResponse
    do {
      answer = try await client.send(request)
    } catch {
      throw AppleKeysFailure(error)
    }
    // Its media type is not looked at: Apple has sent several. What the body is, the reader of the set finds out.
    guard answer.status == 200 else { throw AppleKeysFailure(.status, "status \(answer.status)") }
    return AppleKeysAnswer(answer.body, date: answer.header("Date").flatMap(Timestamp.init(httpDate:)))
  }
}

extension AppleKeysFailure {
  fileprivate init(_ error: HTTPClientError) {
    let reason: Reason =
      switch error.code {
      case .deadline: .deadline
      case .tooLarge: .tooLarge
      default: .unreachable
      }
    self.init(reason, error.description)
  }
}
