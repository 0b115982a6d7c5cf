import TransparencyLog

/// What a rehearsal leaves behind of its audit log, for somebody else to check.
struct RehearsalProof {
  /// How many entries the log has.
  let size: UInt64
  /// The key that verifies all of it.
  let key: VerifierKey
  /// The receipts of all that the log has about the account's deletion.
  let receipts: [String]
  /// The one of them that is of the erasure.
  let erasure: String
  /// The file with all of the log.
  let bundle: String

  /// Has docs/verify.py check all of it. Returns what there is to be said, and throws where it says no.
  func check(with verifier: OutsideVerifier) async throws -> String {
    for receipt in receipts { try await verifier.verify("receipt", receipt, by: key) }
    try await verifier.verify("log", bundle, by: key)
    return "\(verifier.script) has verified all \(receipts.count) receipts of the deletion, and the log."
  }
}
