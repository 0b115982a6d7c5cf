import EventLoop
import Foundation
import HTTPClient
import LogSupport
import TestSupport
import Testing
import TransparencyLog

/// A reader of a log who asks for its checkpoint again and again, and forgets none that it was ever shown.
@Loop
final class CheckpointReader {
  /// The texts of those that it was shown, by their size: more than one of a size is a log that lies.
  private(set) var seen: [UInt64: [UInt8]] = [:]
  /// The largest size that readers have been shown.
  private(set) var largest: UInt64 = 0
  private var notes: [UInt64: SignedNote] = [:]
  private let trust: LogTrust
  private let files: TemporaryDirectory
  private var reading: Task<Void, any Error>?

  /// A reader of the log that the key names.
  init(_ key: VerifierKey, files: TemporaryDirectory) throws {
    trust = try LogTrust(origin: key.name, key: key, policy: .none)
    self.files = files
  }

  /// Asks a program for as long as it answers; whom it asked before it asks no more.
  func follow(_ log: RunningAuditLog) {
    reading?.cancel()
    reading = Task { @Loop [weak self] in
      var last: UInt64 = 0
      while !Task.isCancelled {
        let bytes: [UInt8]?
        do { bytes = try await log.read(LogPath.checkpoint) } catch is HTTPClientError { return }  // it was killed
        guard let self else { return }
        if let bytes {
          let size = try see(bytes)
          #expect(size >= last, "a program never shows less than before")
          last = size
        }
        try await Loop.sleep(for: .milliseconds(3))
      }
    }
  }

  /// Waits for the last answer of who was asked: nothing that was shown is left out.
  func stop() async throws {
    reading?.cancel()
    do { try await reading?.value } catch is CancellationError { reading = nil }
  }

  /// Was shown a checkpoint, be it by a witness that was asked to cosign it. Returns its size.
  @discardableResult
  func see(_ bytes: [UInt8]) throws -> UInt64 {
    let note = try SignedNote(bytes)
    let checkpoint = try trust.verify(note).checkpoint
    #expect(seen[checkpoint.size, default: note.text] == note.text, "two trees of \(checkpoint.size) entries")
    seen[checkpoint.size] = note.text
    notes[checkpoint.size] = note
    largest = max(largest, checkpoint.size)
    return checkpoint.size
  }

  /// Has our program and Go's sumdb verify a log as a whole, and that it continues each tree that was ever shown.
  func expectContinued(by log: String, sourceLocation: SourceLocation = #_sourceLocation) async throws {
    let kept = notes.map { size, note in files.write("seen-\(size)", note.bytes) }
    let ours = try await RunningProgram.finish(
      path: RunningProgram.path(of: "siwa"),
      ["audit", "verify", "--log", log, "--vkey", trust.key.text] + kept.flatMap { ["--since", $0] })
    #expect(
      ours.end == .exit(0) && ours.output.hasSuffix("All of it holds.\n"), "\(ours.errors)",
      sourceLocation: sourceLocation)
    let go = try await GoJudge.verify(log, trust.origin, [trust.key], since: kept)
    #expect(go.hasPrefix("ok "), "\(go)", sourceLocation: sourceLocation)
  }
}
