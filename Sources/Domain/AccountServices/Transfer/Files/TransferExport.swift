package import AccountEvents
package import AccountStore
package import EventLoop
package import TransparencyLog

/// Hands over: writes the users who have an identifier into files for the recipient, and a signed manifest when all of them are
/// there. Whatever is killed when, a manifest stands beside whole files or there is none.
@Loop
package struct TransferExport {
  /// What came of it.
  package struct Outcome: Sendable, Hashable {
    /// What the files are said to hold.
    package let manifest: TransferManifest
    /// How many users are done by the store and do not open there: they are in no file.
    package let damaged: Int64
    /// What a run that was broken off had left in the directory, and is gone now.
    package let leftovers: [String]
    /// Files of an earlier export that this one does not write, encrypted or in the clear, and which are gone now.
    package let outdated: [String]
    /// How many of the keys a spreadsheet takes for formulas.
    package let formulas: Int64
  }

  /// So many users are read at once.
  private static let page = 512
  /// The files of users, encrypted and not.
  private static let names = ["users.jsonl", "users.csv", "users.jsonl.age", "users.csv.age"]

  private let plan: TransferPlan
  private let store: any TransferStore
  private let directory: String
  private let recipient: String?
  private let age: Age

  /// An export into the directory, encrypted to `recipient` by age where there is one.
  package nonisolated init(
    of plan: TransferPlan, in store: any TransferStore, to directory: String, encryptedTo recipient: String?,
    by age: Age
  ) {
    (self.plan, self.store, self.directory, self.recipient, self.age) = (plan, store, directory, recipient, age)
  }

  /// Writes all of it. `tell` is called with how many users are written, and of how many.
  package func run(
    signedBy signer: some NoteSigning, at time: Timestamp, _ tell: @Loop (Int64, Int64) -> Void
  ) async throws -> Outcome {
    try Directory.make(directory)
    let lock = try Directory.lock(directory)
    defer { Directory.unlock(lock) }
    // Without it, what lies there is no export: this one, too, until it is whole.
    try Directory.remove(TransferManifest.name, from: directory)
    var leftovers: [String] = []
    for name in Self.names + [TransferManifest.name] {
      if let leftover = try TransferDraft.removeLeftover(of: "\(directory)/\(name)") { leftovers.append(leftover) }
    }
    let suffix = recipient == nil ? "" : ".age"
    var outdated: [String] = []
    // Beside encrypted files the same users must not lie in the clear.
    for name in Self.names where name.hasSuffix(".age") == suffix.isEmpty {
      if try Directory.remove(name, from: directory) { outdated.append("\(directory)/\(name)") }
    }
    let (json, csv) = (try draft("users.jsonl\(suffix)"), try draft("users.csv\(suffix)"))
    let total = try await store.census(of: plan).done
    try csv.write(TransferLine.header)
    var (count, damaged, formulas, last): (Int64, Int64, Int64, Int64) = (0, 0, 0, 0)
    while true {
      let users = try await store.transferUsers(of: plan, in: .done, after: last, limit: Self.page)
      guard let end = users.last else { break }
      last = end.number
      for user in users {
        guard let identifier = user.transferSubject else {
          damaged += 1
          continue
        }
        try json.write(TransferLine.json(user.key, identifier))
        try csv.write(TransferLine.csv(user.key, identifier))
        count += 1
        if TransferLine.isFormula(user.key) { formulas += 1 }
      }
      tell(count, max(total, count))
    }
    var files: [TransferManifest.File] = []
    for draft in [json, csv] {
      let (size, digest) = try draft.finish()
      let name = draft.path.dropFirst(directory.count + 1)
      files.append(TransferManifest.File(name: String(name), size: size, digest: digest))
    }
    var census = try await store.census(of: plan)
    if damaged > 0 { census.refused[.damaged, default: 0] += damaged }
    let manifest = TransferManifest(of: plan, census, done: count, files: files, at: time)
    let note = try await SignedNote.sign(manifest.text, with: signer)
    for draft in [json, csv] { try draft.publish() }
    let draft = try draft(TransferManifest.name, isPlain: true)
    try draft.write(note.bytes)
    _ = try draft.finish()
    try draft.publish()
    return Outcome(
      manifest: manifest, damaged: damaged, leftovers: leftovers, outdated: outdated, formulas: formulas)
  }

  private func draft(_ name: String, isPlain: Bool = false) throws -> TransferDraft {
    try TransferDraft("\(directory)/\(name)", encryptedTo: isPlain ? nil : recipient, by: age)
  }
}
