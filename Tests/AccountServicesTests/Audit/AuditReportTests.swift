import AccountEvents
import AccountServices
import AuditSupport
import JSON
import LogSupport
import TestSupport
import Testing
import TransparencyLog

/// Reports, explanations, receipts and bundles of a log with a few events.
@Suite struct AuditReportTests {
  private let files = TemporaryDirectory()
  private let log: SampleLog

  init() throws { log = try SampleLog(in: files.path + "/log") }

  private static let now = SampleHistory.moment(3600)

  /// An obligation that is met, an open and an overdue one; decisions, a gap, a signature that does not hold.
  private static var history: SampleHistory {
    var history = SampleHistory()
    history.comes("met", at: 0)
    history.isDone("met", at: 10)
    history.comes("overdue", .consentRevoked, at: 20, account: 2, signature: .refused)
    history.does(.noToken, "overdue", .consentRevoked, by: .tokenRevoker, at: 21, account: 2)
    history.does(
      .accountErased, "overdue", .consentRevoked, by: .dataEraser, at: 22, account: 2,
      targets: [
        .init(name: "shop", state: "discarded", before: nil, affected: nil, after: nil, note: "by bob: <closed> & gone")
      ])
    history.decides(.released, "young", of: nil, at: 3400, by: "alice", because: nil)
    history.comes("young", .mailOff, at: 3500, account: 3)
    history.misses(5..<8, of: .outcomes, at: 3501)
    return history
  }

  private func write(_ history: SampleHistory = history) async throws -> AuditLog {
    let entries = history.entries
    try await log.write([entries.count]) { entries[$0].bytes }
    return try await AuditLog.open(LogDirectory(log.path), trusting: log.trust)
  }

  private func report(in period: AuditPeriod = AuditPeriod(from: nil, to: nil)) async throws -> AuditReport {
    let audited = try await write()
    var reporter = AuditReporter(of: ConcernedConsumers(without: []), in: period, within: .seconds(600))
    try await audited.entries(progress: { _, _ in }, { index, entry in reporter.take(entry, at: index) })
    return try await reporter.report(of: audited, at: "the <log>", now: Self.now)
  }

  @Test func aReportSaysWhatIsOpenOverdueDecidedAndNotSeen() async throws {
    let report = try await report()
    #expect(!report.isInOrder && report.overdueCount == 1)
    #expect(report.total.received == 3 && report.total.met == 1 && report.total.times.maximum == 12_000)
    #expect(report.open.rows.map(\.obligation.id.text) == ["overdue", "young"])
    #expect(report.open.rows.map(\.isOverdue) == [true, false] && report.open.rows.map(\.age) == [3_580_000, 100_000])
    #expect(report.open.rows.map(\.missing) == [.emailRelay, .emailRelay])
    #expect(report.decisions.rows.map(\.subject) == ["target shop", "apple.account-events.quarantine.v1"])
    #expect(report.gaps.count == 1 && report.unproven.rows.map(\.obligation.id.text) == ["overdue"])
    #expect(report.types.map(\.type) == ["account-delete", "consent-revoked", "email-disabled"])
    #expect(
      report.outcomes.contains { $0.consumer == "data-eraser" && $0.outcome == "account-erased" && $0.count == 2 })
  }

  @Test func whatLiesOutsideThePeriodIsNotInTheReport() async throws {
    let report = try await report(in: AuditPeriod(from: nil, to: SampleHistory.moment(20)))
    #expect(report.isInOrder && report.total.received == 1 && report.open.count == 0 && report.gaps.count == 0)
    #expect(report.decisions.count == 0 && report.outcomes.map(\.count) == [1, 1, 1, 1])
  }

  /// Events came at 20 and went before the log saw them, which was noticed at 50; then it goes on. The clock was ahead once.
  @Test func whatIsMissingCountsInThePeriodInWhichItMayHaveCome() throws {
    var history = SampleHistory()
    history.comes("ahead", at: 1000)
    history.comes("met", at: 10)
    history.isDone("met", at: 11)
    let before = history.entries.map { Self.placed($0, in: 3) }
    history.misses(2..<7, of: .accountEvents, at: 50)
    history.misses(2..<7, of: .outcomes, at: 50)
    let entries = before + history.entries.suffix(2)
    func gaps(_ from: Double?, _ to: Double?) -> Int {
      let period = AuditPeriod(from: from.map(SampleHistory.moment), to: to.map(SampleHistory.moment))
      var reporter = AuditReporter(of: ConcernedConsumers(without: []), in: period, within: .seconds(600))
      for (index, entry) in entries.enumerated() { reporter.take(entry, at: UInt64(index)) }
      return reporter.gaps.count
    }
    #expect(gaps(nil, 5) == 0, "all of that is there: a record of 10 stands before the gap")
    #expect(gaps(nil, 10) == 0 && gaps(15, 30) == 1 && gaps(nil, 30) == 1, "noticed later, and of this time perhaps")
    #expect(gaps(40, 60) == 2 && gaps(nil, nil) == 2, "noticed in the period")
    #expect(gaps(51, nil) == 0, "all of it came before")
  }

  /// The same entry, if it is an obligation, of another partition.
  private static func placed(_ entry: AuditEntry, in partition: Int32) -> AuditEntry {
    guard case .obligation(var obligation) = entry else { return entry }
    let origin = obligation.source.origin
    obligation.source = .init(RecordOrigin(origin.topic, partition, origin.offset), at: obligation.source.time)
    return .obligation(obligation)
  }

  @Test func theJSONOfAReportSaysTheSame() async throws {
    let json = try JSONValue(
      decoding: try await report().json.bytes, JSONLimits(bytes: 1 << 20, depth: 16, members: 8192))
    #expect(json["report"]?.text == "siwa-audit-report/v1" && json["in_order"] == false && json["overdue"] == 1)
    #expect(json["obligations"]?["received"] == 3 && json["obligations"]?["time_ms"]?["max"] == 12_000)
    #expect(json["types"]?["consent-revoked"]?["open"] == 1 && json["deadline_ms"] == 600_000)
    #expect(json["types"]?["consent-revoked"]?["time_ms"]?["p50"] == .null)
    #expect(json["log"]?["checkpoint"]?.text.map { Array($0.utf8) } == (try log.bytes(of: LogPath.checkpoint)))
    #expect(json["open"]?["count"] == 2 && json["gaps"]?["count"] == 1 && json["signatures"]?["refused"] == 1)
  }

  @Test func thePageEscapesWhatPeopleWrote() async throws {
    let page = try await report().html
    #expect(page.contains("by bob: &lt;closed&gt; &amp; gone") && !page.contains("<closed>"))
    #expect(
      page.contains("<code>the &lt;log&gt;</code>") && page.contains("1 overdue, and the log has not seen everything"))
    #expect(!page.contains("<script") && !page.contains("http://") && !page.contains("https://"))
    #expect(page.contains(#"<svg class="plot""#) && page.contains("half within 12 s"))
  }

  @Test func aPageAboutNothingSaysSo() async throws {
    let page = try await report(in: AuditPeriod(from: SampleHistory.moment(-2), to: SampleHistory.moment(-1))).html
    #expect(page.contains("Every obligation of this period is met") && page.contains("Nothing came in this period."))
    #expect(!page.contains("<svg"))
  }

  @Test func anExplanationTellsTheStepsInTheirOrder() async throws {
    let audited = try await write()
    let event = try #require(EventID("met"))
    let entries = try await audited.entries(of: event, progress: { _, _ in })
    let explanation = EventExplanation(entries, of: ConcernedConsumers(without: []))
    #expect(
      explanation.steps.map(\.what) == [
        "happened", "signed", "came", "token-revoker", "token-revoker", "data-eraser", "email-relay",
      ])
    #expect(explanation.steps.last?.words == "relay-changed" && explanation.metAt == SampleHistory.moment(12))
    #expect(explanation.steps[5].words == "account-erased; shop erased: 1 found, 3 erased, 0 left")
    #expect(explanation.duties.map(\.missing) == [[]])
    let overdue = try await audited.entries(of: try #require(EventID("overdue")), progress: { _, _ in })
    let open = EventExplanation(overdue, of: ConcernedConsumers(without: []))
    #expect(open.metAt == nil && open.duties.map(\.missing) == [.emailRelay])
    #expect(try await audited.entries(of: try #require(EventID("me")), progress: { _, _ in }).isEmpty)
  }

  @Test func aReceiptHasItsEntryWithItAndIsVerifiedByTheKeyAlone() async throws {
    let audited = try await write()
    let event = try #require(EventID("met"))
    for (index, entry) in try await audited.entries(of: event, progress: { _, _ in }) {
      let receipt = try await AuditReceipt(of: entry, at: index, in: audited)
      let (read, checkpoint) = try AuditReceipt.verify(receipt.proof.bytes, trusting: log.trust)
      #expect(read.entry == entry && checkpoint.checkpoint.size == audited.size)
      #expect(receipt.fileName(of: event) == "met.\(entry.kind).\(index).tlog-proof")
      let other = LogProof(
        extra: receipt.entry.bytes, index: index + 1, inclusion: receipt.proof.inclusion, note: receipt.proof.note)
      #expect(throws: LogError.self) { try AuditReceipt.verify(other.bytes, trusting: log.trust) }
    }
    let receipt = try await AuditReceipt(of: Self.history.entries[0], at: 0, in: audited)
    let hostile = try #require(EventID("../a/b;c$d"))
    #expect(receipt.fileName(of: hostile) == "___a_b_c_d.obligation.0.tlog-proof")
    await #expect(throws: LogError.self) { try await AuditReceipt(of: Self.history.entries[1], at: 0, in: audited) }
  }

  @Test func anEntryOfALaterVersionIsNotPassedOver() async throws {
    let entries = Self.history.entries
    try await log.write([5]) { $0 == 3 ? Array(#"{"kind":"obligation","v":2}"#.utf8) : entries[$0].bytes }
    let audited = try await AuditLog.open(LogDirectory(log.path), trusting: log.trust)
    let error = await #expect(throws: AuditLog.UnknownEntry.self) {
      try await audited.entries(progress: { _, _ in }, { _, _ in })
    }
    #expect(error?.index == 3 && error?.cause.code == .unknownForm)
  }

  @Test func aBundleVerifiesAndItsManifestDoesToo() async throws {
    let audited = try await write()
    let (id, modulus) = (try #require(KeyID("fh6Bs8C")), String(repeating: "u", count: 341) + "w")
    let key = try #require(AppleSigningKey(id: id, modulus: modulus, firstSeen: SampleHistory.begin))
    let attachments = AuditBundle.Attachments(keys: nil, witnesses: [log.witness.key], appleKeys: [key])
    let path = files.path + "/audit.tar"
    var archive = try LogArchiveWriter(creating: path)
    try await AuditBundle.write(audited, attachments, to: &archive, progress: { _, _ in })
    try archive.finish()
    try archive.publish()
    let bundle = try LogArchive(path)
    try await AuditBundle.verifyManifest(of: bundle)
    #expect(
      bundle.names.filter { !$0.hasPrefix("tile/") } == [
        "apple-signing-keys.json", "checkpoint", "manifest.json", "witnesses",
      ])
    _ = try await LogView.verify(bundle, trusting: log.trust, since: [], progress: { _, _ in }, entry: { _, _ in })
      .get()
    let changed = Changed(source: bundle, path: "witnesses")
    await #expect(throws: LogFinding.self) { try await AuditBundle.verifyManifest(of: changed) }
    await #expect(throws: LogFinding.self) {
      try await AuditBundle.verifyManifest(of: Changed(source: bundle, path: "manifest.json"))
    }
  }

  /// A bundle with another file of a name.
  private struct Changed: LogSource {
    let source: LogArchive
    let path: String

    func read(_ path: String, limit: Int) async throws(LogError) -> [UInt8]? {
      path == self.path ? [1] : try await source.read(path, limit: limit)
    }
  }
}
