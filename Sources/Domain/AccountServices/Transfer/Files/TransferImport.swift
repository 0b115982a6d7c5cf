package import AccountEvents
package import AccountStore
import Cryptography
package import EventLoop
package import TransparencyLog

/// Takes over what the sending team has handed over: once it is known to be theirs, whole, of this transfer and new.
///
/// Nothing is added before every line was read. Broken off, the same import again completes it.
@Loop
package struct TransferImport {
  /// What came of it.
  package struct Outcome: Sendable, Hashable {
    /// What the sending team says.
    package let manifest: TransferManifest
    /// How many of the users are new.
    package let new: Int64
    /// The lines whose key leaves open whom it names, and which were not taken.
    package let faults: KeyFaults
  }

  private static let page = 512

  private let plan: TransferPlan
  private let store: any TransferStore
  private let directory: String
  private let signer: VerifierKey
  private let identity: String?
  private let age: Age

  /// An import of what lies in the directory, and which `signer` has signed; decrypted by age with the identity in the file of
  /// that name where there is one.
  package nonisolated init(
    into plan: TransferPlan, in store: any TransferStore, from directory: String, signedBy signer: VerifierKey,
    decryptedWith identity: String?, by age: Age
  ) {
    (self.plan, self.store, self.directory, self.signer) = (plan, store, directory, signer)
    (self.identity, self.age) = (identity, age)
  }

  /// Takes all of it. `tell` is called with how many users the store has got, and of how many.
  package func run(at time: Timestamp, _ tell: @Loop (Int64, Int64) -> Void) async throws -> Outcome {
    try await refuseRivals()
    let manifest = try manifest()
    let (file, identity) = try file(of: manifest)
    if try await store.hasImported(file.digest, into: plan) { throw wasImported(file) }
    let source = try TransferSource(file, in: directory)
    var count: Int64 = 0
    try await source.readLines(decryptedWith: identity, by: age, page: Self.page) { first, lines in
      count += Int64(try users(lines, first, source.path).count)
    }
    guard count == manifest.done else {
      throw TransferFileFault(source.path, "it holds \(count) users, and \(manifest.done) by its manifest")
    }
    var taken: Int64 = 0
    var intake = TransferIntake(into: plan, in: store)
    try await source.readLines(decryptedWith: identity, by: age, page: Self.page) { first, lines in
      try await intake.add(try users(lines, first, source.path))
      taken += Int64(lines.count)
      tell(taken, count)
    }
    guard try await store.noteImport(file.digest, into: plan, at: time) else { throw wasImported(file) }
    return Outcome(manifest: manifest, new: intake.new, faults: intake.faults)
  }

  /// Of two plans of one transfer only the one that was made first takes users.
  private func refuseRivals() async throws {
    let first = try await store.transferPlans().first { other in
      other.isRival(of: plan) && (other.createdAt, other.name) < (plan.createdAt, plan.name)
    }
    guard let first else { return }
    throw TransferFileFault(
      directory,
      "the plan \(first.name) is of the same transfer, and was made before \(plan.name): import into that one")
  }

  private func wasImported(_ file: TransferManifest.File) -> TransferFileFault {
    TransferFileFault("\(directory)/\(file.name)", "it was imported into the plan \(plan.name) before")
  }

  /// The manifest, which is the sending team's, and of this transfer.
  private func manifest() throws -> TransferManifest {
    let path = "\(directory)/\(TransferManifest.name)"
    let bytes = try RegularFile.bytes(of: path, upTo: TransferManifest.longest)
    let note: SignedNote
    do throws(LogError) {
      note = try SignedNote(bytes)
      _ = try note.verified(by: [signer])
    } catch {
      throw TransferFileFault(path, "it is not signed by \(signer.name): \(error.detail)")
    }
    let manifest = try TransferManifest(note.text)
    let facts: [(what: String, theirs: String, ours: String)] = [
      ("the sending team", manifest.sender.text, plan.otherTeam.text),
      ("the recipient", manifest.recipient.text, plan.team.text), ("the app", manifest.client.text, plan.client.text),
    ]
    for fact in facts where fact.theirs != fact.ours {
      throw TransferFileFault(path, "\(fact.what) is \(fact.theirs), and in the plan \(plan.name) it is \(fact.ours)")
    }
    return manifest
  }

  private func file(of manifest: TransferManifest) throws -> (TransferManifest.File, identity: String?) {
    let (plain, encrypted) = ("users.jsonl", "users.jsonl.age")
    if let file = manifest.files.first(where: { $0.name == plain }) { return (file, nil) }
    guard let file = manifest.files.first(where: { $0.name == encrypted }) else {
      throw TransferFileFault(directory, "the manifest tells of no \(plain)")
    }
    guard let identity else {
      throw TransferFileFault(
        "\(directory)/\(encrypted)", "it is encrypted: --identity FILE names age's identity for it")
    }
    return (file, identity)
  }

  private func users(
    _ lines: [[UInt8]], _ first: Int64, _ path: String
  ) throws -> [(line: Int64, user: NewTransferUser)] {
    var users: [(line: Int64, user: NewTransferUser)] = []
    for (index, line) in lines.enumerated() {
      let number = first + Int64(index)
      do throws(TransferLine.Fault) { users.append((number, try TransferLine.received(line))) } catch {
        throw TransferFileFault("\(path): line \(number)", error.description)
      }
    }
    return users
  }
}
