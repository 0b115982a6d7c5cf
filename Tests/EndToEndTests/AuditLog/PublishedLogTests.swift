import EventLoop
import Foundation
import LogSupport
import TestSupport
import Testing
import TransparencyLog

/// A log that a server of somebody else's publishes: a directory of files is all that an auditor needs.
@Loop @Suite(.serialized, .timeLimit(.minutes(30))) struct PublishedLogTests {
  private let files = TemporaryDirectory()

  // MARK: What somebody has done to it

  @Test(Python.isThere) func pythonsServerShowsWhatTheDirectoryHas() async throws {
    try await judgeWhatever(isServedBy: .python)
  }

  @Test(FileServer.nginxIsThere) func nginxShowsWhatTheDirectoryHas() async throws {
    try await judgeWhatever(isServedBy: .nginx)
  }

  /// Whole or tampered with, the log is judged over the server as in its directory.
  private func judgeWhatever(isServedBy server: FileServer) async throws {
    try await server.serve(files.path) { address in
      let whole = try SampleLog(in: files.path + "/whole")
      try await Tampering.write(whole)
      let good = try await verify("\(address)/whole", whole.signer.key)
      #expect(good.end == .exit(0) && good.output.hasSuffix("All of it holds.\n") && good.errors == "", "\(good)")
      for (number, tampering) in Tampering.allCases.enumerated() {
        let log = try SampleLog(in: files.path + "/log-\(number)")
        try await Tampering.write(log)
        let expected = try await tampering.apply(to: log)
        let since = expected.since.map { ["--since", $0] } ?? []
        let judged = try await verify("\(address)/log-\(number)/", log.signer.key, since)
        let onDisk = try await verify(log.path, log.signer.key, since)
        #expect(judged.end == .exit(1) && judged.errors.hasPrefix("siwa: NO: \(expected.ours)"), "\(judged)")
        #expect(judged.errors == onDisk.errors && judged.end == onDisk.end, "\(tampering): \(onDisk)")
      }
    }
  }

  // MARK: Beside our own

  /// A log that grows is published by both at once; the other server goes on once the program has ended.
  @Test(RealBroker.isThere, Python.isThere) func aServerOfFilesIsJudgedAsOurOwn() async throws {
    try await AuditTraffic.run(in: files) { stage, traffic in
      // Not a port that the system gives to somebody else once the program has ended.
      let listen = ["SIWA_AUDIT_LOG_LISTEN": "\(try SocketAddress.free())"]
      let (log, key) = (try await stage.startAuditLog(listen), stage.auditKey.key)
      try await traffic.put(60)
      try await log.untilPublished(traffic.entryCount)
      try await FileServer.python.serve(stage.auditLog) { address in
        let places = ["http://\(log.address)", address]
        func judgeBoth(_ words: [String] = []) async throws -> (end: RunningProgram.End, output: String, errors: String)
        {
          let ours = try await verify(places[0], key, words)
          let theirs = try await verify(places[1], key, words)
          #expect(theirs.output == ours.output.replacing(places[0], with: places[1]), "\(theirs)")
          #expect(theirs.end == ours.end && theirs.errors == ours.errors, "\(theirs)")
          return theirs
        }
        let kept = files.path + "/kept"
        let first = try await judgeBoth(["--keep", kept])
        #expect(first.end == .exit(0) && first.output.contains("\nEntries     \(traffic.entryCount)\n"), "\(first)")
        let before = traffic.entryCount
        try await traffic.put(60)
        try await log.untilPublished(traffic.entryCount)
        let second = try await judgeBoth(["--since", kept])
        #expect(second.end == .exit(0) && second.output.contains("Continues   the \(before) entries of "), "\(second)")

        // Somebody changes a byte on the disk, below both.
        let bundle = stage.auditLog + "/tile/entries/000"
        let bytes = try Data(contentsOf: URL(fileURLWithPath: bundle))
        var changed = bytes
        changed[2] ^= 1
        try changed.write(to: URL(fileURLWithPath: bundle))
        let refused = try await judgeBoth()
        #expect(refused.end == .exit(1) && refused.errors.hasPrefix("siwa: NO: wrong-entry: tile/entries/000, entry 0"))
        try FileManager.default.removeItem(atPath: bundle)
        let lacking = try await judgeBoth()
        #expect(
          lacking.end == .exit(1) && lacking.errors.hasPrefix("siwa: NO: missing: tile/entries/000"), "\(lacking)")
        try bytes.write(to: URL(fileURLWithPath: bundle))

        #expect(try await log.end() == .exit(0))
        #expect(try await verify(places[0], key).end == .exit(3), "ours is away")
        let alone = try await verify(address, key, ["--since", kept])
        #expect(alone.end == .exit(0), "\(alone)")
        // What is brought home over it is what the operator would hand out, and what Python judges.
        var bundles: [Data] = []
        for place in [address, stage.auditLog] {
          let bundle = "\(files.path)/\(bundles.count).tar"
          let written = try await stage.siwa(
            "audit", "bundle", "--log", place, "--vkey", key.text, "--without-apple-keys", "-o", bundle)
          #expect(written.end == .exit(0), "\(written)")
          bundles.append(try Data(contentsOf: URL(fileURLWithPath: bundle)))
        }
        #expect(bundles[0] == bundles[1])
        let python = try await Python.run(
          "docs/verify.py", ["log", "\(files.path)/0.tar", "--vkey", key.text, "--since", kept])
        #expect(python.end == .exit(0), "\(python)")
        #expect(String(decoding: python.output, as: UTF8.self).hasSuffix("All \(traffic.entryCount) entries hold.\n"))
      }
    }
  }

  private func verify(
    _ place: String, _ key: VerifierKey, _ words: [String] = []
  ) async throws -> (end: RunningProgram.End, output: String, errors: String) {
    try await RunningProgram.finish(
      path: RunningProgram.path(of: "siwa"), ["audit", "verify", "--log", place, "--vkey", key.text] + words)
  }
}
