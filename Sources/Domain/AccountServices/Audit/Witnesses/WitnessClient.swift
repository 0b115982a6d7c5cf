package import EventLoop
package import HTTPClient
package import TransparencyLog

/// Asks one witness for cosignatures (C2SP tlog-witness): its `add-checkpoint`, with the proof that the log has only grown
/// since what it cosigned last.
@Loop
package final class WitnessClient {
  /// Why there is no cosignature.
  package enum Failure: Error, Sendable, Equatable, CustomStringConvertible {
    /// It could not be asked.
    case unreachable(String)
    /// It answered with this status, or with something else than its protocol has.
    case refused(String)
    /// It has cosigned a checkpoint that is larger than this one: this log has lost its end, or there are two of it.
    case ahead(of: UInt64, size: UInt64)

    /// What happened, in words.
    package var description: String {
      switch self {
      case .unreachable(let words), .refused(let words): words
      case .ahead(let size, let known): "it has cosigned \(known) entries of this log, which has \(size)"
      }
    }
  }

  /// Its `add-checkpoint`; nil where the prefix leaves no room for that.
  private let url: HTTPClientURL?
  private let key: VerifierKey
  private let client: HTTPClient
  private let deadline: Duration
  private let source: any LogSource
  /// The size of the checkpoint that it has cosigned last, as far as is known.
  private var knownSize: UInt64 = 0

  /// A client of the witness of that key and submission prefix, with or without a slash at its end. Proofs are read from
  /// `source`.
  package init(
    _ prefix: HTTPClientURL, key: VerifierKey, client: HTTPClient, within deadline: Duration, source: any LogSource
  ) {
    url = HTTPClientURL("\(prefix.text)\(prefix.text.hasSuffix("/") ? "" : "/")add-checkpoint")
    (self.key, self.client, self.deadline, self.source) = (key, client, deadline, source)
  }

  /// The note with the witness's cosignature, which is verified.
  package func cosign(_ note: SignedNote, _ head: TreeHead) async throws -> SignedNote {
    // Twice, where the first answer says which size the witness knows.
    for _ in 0..<2 {
      guard knownSize <= head.size else {
        defer { knownSize = 0 }  // to be asked anew: it may have been somebody's mistake
        throw Failure.ahead(of: head.size, size: knownSize)
      }
      let (_, proof) = try await LogView(source, at: head).consistencyProof(from: knownSize)
      let request = WitnessRequest(oldSize: knownSize, consistency: proof, note: note)
      let response = try await post(request.body)
      switch response.status {
      case 200:
        let cosigned = try WitnessAnswer.cosigned(note, response.body, by: [key])
        knownSize = head.size
        return cosigned
      case 409: knownSize = try WitnessAnswer.size(response.body)
      default: throw Failure.refused("it answered with status \(response.status)")
      }
    }
    throw Failure.refused("it does not accept the size that it named itself")
  }

  private func post(_ body: [UInt8]) async throws(Failure) -> HTTPClientResponse {
    guard let url else { throw .unreachable("its address is too long") }
    do throws(HTTPClientError) {
      return try await client.send(
        .post(
          body, to: url, headers: [("Content-Type", "text/plain; charset=utf-8")], isRepeatable: true,
          within: deadline, maximumBodySize: WitnessAnswer.maximumByteCount))
    } catch {
      throw .unreachable("\(error)")
    }
  }
}
