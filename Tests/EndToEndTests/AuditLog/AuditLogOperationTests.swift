import EventLoop
import Foundation
import Glibc
import LogSupport
import TestSupport
import Testing
import TransparencyLog

/// What operators rely on while `siwa-audit-log` runs: its disk, and a second process.
@Loop @Suite(RealBroker.isThere, GoJudge.isThere, .serialized, .timeLimit(.minutes(30)))
struct AuditLogOperationTests {
  private let files = TemporaryDirectory()

  // MARK: The disk

  /// On a disk of a few megabytes, which the system makes where it lets us.
  @Test(.enabled("no mount namespaces here") { try await SmallDisk.isPossible() })
  func aFullDiskIsSaidAndOverWhenThereIsRoom() async throws {
    try await AuditTraffic.run(in: files) { stage, traffic in
      let disk = try await SmallDisk(at: files.path + "/disk")
      let place = ["SIWA_AUDIT_LOG_DIRECTORY": files.path + "/disk/audit-log"]
      let reader = try CheckpointReader(stage.auditKey.key, files: files)
      try await stage.beginAuditLog(place, on: disk)
      var log = try await stage.startAuditLog(place, on: disk)
      reader.follow(log)
      try await traffic.put(100)
      try await log.untilPublished(traffic.entryCount)
      try await log.untilReadiness(is: true)
      let before = try await log.checkpoint()

      try disk.fill()
      try await traffic.put(100)
      _ = try await log.program.line(with: #""level":"error""#, "the audit log cannot go on", "full: ")
      #expect(try await log.administration.get("/readyz").status == 503)
      #expect(try await log.administration.get("/readyz").text.contains("log: not ready: full: "))
      #expect(try await log.checkpoint()?.note == before?.note && before != nil)
      #expect(try await log.read("tile/entries/000") != nil, "what it has it serves")

      // Whoever starts without room serves what is there, too.
      await log.program.kill()
      log = try await stage.startAuditLog(place, on: disk)
      reader.follow(log)
      _ = try await log.program.line(with: #""level":"error""#, "the audit log cannot go on", "full: ")
      #expect(try await log.administration.get("/readyz").status == 503)
      #expect(try await log.checkpoint()?.note == before?.note)

      disk.empty()
      try await log.untilPublished(traffic.entryCount)
      try await log.untilReadiness(is: true)
      let verified = try await stage.siwa(
        "audit", "verify", "--log", "http://\(log.address)", "--vkey", stage.auditKey.key.text)
      #expect(verified.end == .exit(0), "\(verified)")
      #expect(try await log.end() == .exit(0))
      // The disk goes with the test, and takes the place of the log that the stage has begun.
      try FileManager.default.removeItem(atPath: stage.auditLog)
      try FileManager.default.copyItem(atPath: disk.path + "/audit-log", toPath: stage.auditLog)
      try await traffic.expectAll(seenBy: reader)
    }
  }

  /// The log can be opened, and takes nothing: whoever asks meanwhile is told so, however often it is opened.
  @Test func aDiskThatTakesNoEntriesIsNotReadyHoweverOftenItIsTried() async throws {
    try await AuditTraffic.run(in: files) { stage, traffic in
      let faults = try await PreloadedFaults(files: files, folder: stage.auditLog + "/.tile.new")
      let reader = try CheckpointReader(stage.auditKey.key, files: files)
      let log = try await stage.startAuditLog(faults.environment)
      reader.follow(log)
      try await traffic.put(10)
      try await log.untilPublished(traffic.entryCount)
      // What is published may be seen before readiness is looked at for the first time.
      try await log.untilReadiness(is: true)
      faults.isDiskFull = true
      try await traffic.put(10)
      try await log.untilReadiness(is: false)
      let opened = log.program.errors.split(separator: "\n").count { $0.contains("the audit log is open") }
      try await until {
        let words = try await log.administration.get("/readyz")
        #expect(words.status == 503 && words.text.contains("log: not ready: full: "), "\(words)")
        return log.program.errors.split(separator: "\n").count { $0.contains("the audit log is open") } >= opened + 3
      }
      let causes = log.program.errors.split(separator: "\n").filter { $0.contains("the audit log cannot go on") }
        .map { $0.drop { $0 != "," }.drop { $0 != ":" } }
      #expect(zip(causes, causes.dropFirst()).allSatisfy { $0 != $1 }, "what is no news is not said: \(causes)")
      faults.isDiskFull = false
      try await log.untilPublished(traffic.entryCount)
      try await log.untilReadiness(is: true)
      #expect(try await log.end() == .exit(0))
      try await traffic.expectAll(seenBy: reader)
    }
  }

  /// A second log under the name and the key of the first would contradict it.
  @Test func aVolumeThatIsNotMountedBeginsNoSecondLog() async throws {
    try await AuditTraffic.run(in: files) { stage, traffic in
      let reader = try CheckpointReader(stage.auditKey.key, files: files)
      var log = try await stage.startAuditLog()
      reader.follow(log)
      try await traffic.put(10)
      try await log.untilPublished(traffic.entryCount)
      #expect(try await stage.siwa("audit", "begin").end == .exit(3), "it is running there")
      #expect(try await log.end() == .exit(0))
      let again = try await stage.siwa("audit", "begin")
      #expect(again.end == .exit(1) && again.errors.contains("has begun there already"), "\(again)")

      let (directory, volume) = (stage.auditLog, files.path + "/volume")
      try #require(unsafe rename(directory, volume) == 0 && mkdir(directory, 0o755) == 0)
      log = try await stage.startAuditLog()
      _ = try await log.program.line(
        with: #""level":"error""#, "absent: \(directory): no log was begun in this directory", "'siwa audit begin'")
      let words = try await log.administration.get("/readyz")
      #expect(words.status == 503 && words.text.contains("log: not ready: absent: "), "\(words)")
      #expect(try await log.checkpoint() == nil)
      #expect(try FileManager.default.contentsOfDirectory(atPath: directory) == [])

      _ = files.write("audit-log/index.sqlite", "")
      let refused = try await stage.siwa("audit", "begin")
      #expect(refused.end == .exit(1) && refused.errors.contains("conflict: \(directory)/index.sqlite: "), "\(refused)")
      try #require(unsafe unlink(directory + "/index.sqlite") == 0)

      try #require(unsafe rmdir(directory) == 0 && rename(volume, directory) == 0)
      reader.follow(log)
      try await traffic.put(10)
      try await log.untilPublished(traffic.entryCount)
      try await log.untilReadiness(is: true)
      #expect(try await log.end() == .exit(0))
      try await traffic.expectAll(seenBy: reader)
    }
  }

  // MARK: Two processes

  @Test func aSecondProcessStandsByAndTakesOver() async throws {
    try await AuditTraffic.run(in: files) { stage, traffic in
      let reader = try CheckpointReader(stage.auditKey.key, files: files)
      var first = try await stage.startAuditLog()
      try await first.untilReadiness(is: true)
      var second = try await stage.startAuditLog()
      for round in 0..<3 {
        _ = try await second.program.line(with: "another process writes the audit log: this one stands by")
        try await until {
          let words = try await second.administration.get("/readyz")
          return words.status == 503 && words.text.contains("another process writes this log")
        }
        reader.follow(second)
        try await traffic.put(40)
        // Readers are served by either.
        for log in [first, second] { try await log.untilPublished(traffic.entryCount) }
        #expect(try await second.administration.get("/readyz").status == 503)
        await first.program.kill()
        try await traffic.put(40)
        try await second.untilReadiness(is: true)
        try await second.untilPublished(traffic.entryCount)
        if round < 2 { (first, second) = (second, try await stage.startAuditLog()) }
      }
      #expect(try await second.end() == .exit(0))
      try await traffic.expectAll(seenBy: reader)
    }
  }
}
