import AccountEvents
import AccountServices
import EventLoop
import Glibc
import TransparencyLog

extension AuditLog {
  /// Writes a receipt of each of these entries, which are about the event, into a directory, which is made where there is
  /// none. Returns the files, in the order of the entries.
  @Loop
  func writeReceipts(
    of entries: [(index: UInt64, entry: AuditEntry)], about event: EventID, to directory: String
  ) async throws -> [String] {
    try OutputFile.makeDirectory(directory)
    var paths: [String] = []
    for (index, entry) in entries {
      let receipt = try await AuditReceipt(of: entry, at: index, in: self)
      let path = "\(directory)/\(receipt.fileName(of: event))"
      try OutputFile.writing(to: path) { try DurableFile(path: path).replace(with: receipt.proof.bytes) }
      paths.append(path)
    }
    return paths
  }

  /// Writes all of the log into a bundle, which appears once it is verified: a `LogFinding` is thrown where it does not
  /// hold. `trust` is what is known of the log from elsewhere.
  @Loop
  func writeBundle(_ attachments: AuditBundle.Attachments, trusting trust: LogTrust, to file: String) async throws {
    let bar = ProgressBar("entries")
    var archive = try LogArchiveWriter(creating: file)
    try await AuditBundle.write(self, attachments, to: &archive) { bar.note(done: $0, of: $1) }
    try archive.finish()
    let verification = ProgressBar("entries verified")
    let bundle = try LogArchive(archive.draft)
    try await AuditBundle.verifyManifest(of: bundle)
    _ = try await LogView.verify(
      bundle, trusting: trust, since: [], progress: { verification.note(done: $0, of: $1) }, entry: { _, _ in }
    ).get()
    verification.clear()
    try archive.publish()
  }
}
