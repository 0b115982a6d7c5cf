import AccountEvents
import AccountServices
import EventLoop
import Glibc
import TestSupport
import Testing

/// What operators are shown.
@Loop @Suite(.serialized) struct SpoolReportTests {
  private let rig = SpoolRig()

  @Test(.timeLimit(.minutes(30)))
  func tellsWhatIsThereWhileItIsInUse() async throws {
    try await rig.open { spool in
      let empty = try SpoolReport(lookingInto: rig.directory, listing: 10)
      #expect(empty.records == 0 && empty.bytes == 0 && empty.oldest == nil && empty.counts == [] && empty.first == [])
      for number in 1...5 {
        _ = try await spool.insert(SpoolRig.record(number, of: number == 2 ? nil : "ada"))
        rig.advance(by: .seconds(1))
      }
      await spool.remove(1)
      let report = try SpoolReport(lookingInto: rig.directory, listing: 2)
      #expect(report.records == 4 && report.bytes == spool.bytes && report.oldest == spool.oldest)
      #expect(report.counts.map(\.topic) == [.accountEvents, .quarantine] && report.counts.map(\.records) == [3, 1])
      #expect(report.counts.map(\.type) == Array(repeating: "com.apple.siwa.consent-revoked.v1", count: 2))
      #expect(report.first.map(\.sequence) == [2, 3] && report.first.map(\.eventID) == ["event-2", "event-3"])
      #expect(report.first.map(\.topic) == [.quarantine, .accountEvents])
      #expect(report.first.map(\.since.milliseconds) == [SpoolRig.start + 1000, SpoolRig.start + 2000])
      var dumped = ""
      dump(report, to: &dumped)
      #expect(!dumped.contains("ada"), "whom it is about is nobody's business")
      // It was in nobody's way.
      _ = try await spool.insert(SpoolRig.record(6))
    }
    #expect(try SpoolReport(lookingInto: rig.directory, listing: 0).records == 5, "nobody has it")
  }

  @Test(.timeLimit(.minutes(30)))
  func saysWhereThereIsNone() async throws {
    func refusal() -> SpoolError? {
      #expect(throws: SpoolError.self) { try SpoolReport(lookingInto: rig.directory, listing: 0) }
    }
    #expect(refusal()?.code == .missing && refusal()?.description == "the spool in \(rig.directory): there is none")
    #expect(unsafe mkdir(rig.directory, 0o700) == 0)
    #expect(refusal()?.code == .missing)
    // As it is for a moment where an ingress starts for the first time.
    _ = rig.files.write("spool/spool.sqlite", "")
    #expect(refusal()?.code == .missing && refusal()?.detail == "there is none: spool.sqlite is empty")
    // SQLite would remove what lies in the log.
    _ = rig.files.write("spool/spool.sqlite-wal", "records")
    #expect(refusal()?.code == .damaged)
    var status = stat()
    #expect(unsafe stat(rig.directory + "/spool.sqlite-wal", &status) == 0 && status.st_size == 7)
  }
}
