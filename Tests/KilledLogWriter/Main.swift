import Cryptography
import Glibc
import TransparencyLog

/// Writes a log until it is killed, and says on its standard output what a witness would have seen.
///
///     killed-log-writer DIRECTORY KEY write LIFE SIZE   opened SIZE, signed NOTE (in Base64), published SIZE
///     killed-log-writer DIRECTORY KEY full 0 0          refused full, published SIZE; for a disk of a few megabytes
///
/// Entries tell in which LIFE they were appended, so that those of another life make another tree.
@main
struct KilledLogWriter {
  static func main() async {
    let words = CommandLine.arguments
    guard words.count == 6, let life = Int(words[4]), let size = UInt64(words[5]) else { exit(2) }
    do {
      let signer = try NoteSigner(words[2])
      switch words[3] {
      case "write": try await write(into: words[1], signer, life, upTo: size)
      case "full": try await fill(words[1], signer)
      default: exit(2)
      }
    } catch {
      complain("\(error)")
    }
  }

  /// Appends in batches that end beside and on the edges of tiles.
  private static func write(into directory: String, _ signer: NoteSigner, _ life: Int, upTo size: UInt64) async throws {
    let writer = try again { () throws(LogError) in
      _ = try LogWriter.begin(in: directory, origin: signer.key.name)
      return try LogWriter(opening: directory, origin: signer.key.name)
    }
    say("opened \(writer.flushed.size)")
    if writer.isUnpublished, life.isMultiple(of: 2) { try await publish(writer.flushed, of: writer, signer) }
    for step in [1, 2, 97, 156, 1, 30, 225, 300] as [UInt64] where writer.size < size {
      let end = min(writer.size + step, size)
      while writer.size < end { _ = try writer.append(Array("entry \(writer.size) of life \(life)".utf8)) }
      try await publish(again { () throws(LogError) in try writer.flush() }, of: writer, signer)
    }
    if writer.isUnpublished { try await publish(writer.flushed, of: writer, signer) }
  }

  private static func publish(_ checkpoint: Checkpoint, of writer: LogWriter, _ signer: NoteSigner) async throws {
    let note = try await SignedNote.sign(checkpoint.text, with: signer)
    say("signed \(Base64.encode(note.bytes))")
    try again { () throws(LogError) in try writer.publish(note) }
    say("published \(checkpoint.size)")
  }

  /// The same once more, where the disk has failed.
  private static func again<Value>(_ body: () throws(LogError) -> Value) throws(LogError) -> Value {
    do throws(LogError) {
      return try body()
    } catch {
      guard error.code == .failed else { throw error }
      return try body()
    }
  }

  /// Fills the disk, makes room, and goes on: three times with one writer, and once more with another.
  private static func fill(_ directory: String, _ signer: NoteSigner) async throws {
    _ = try LogWriter.begin(in: "\(directory)/log", origin: signer.key.name)
    let writer = try LogWriter(opening: "\(directory)/log", origin: signer.key.name)
    for round in 0..<3 {
      try await fill(writer, signer, round)
      // Not even a byte is left.
      let balloon = unsafe open("\(directory)/balloon", O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
      let air = [UInt8](repeating: 1, count: 512)
      while unsafe Glibc.write(balloon, air, air.count) > 0 {}
      close(balloon)
      do throws(LogError) {
        _ = try writer.flush()
        complain("there should be no room")
      } catch {
        say("refused \(error.code.rawValue)")
      }
      unsafe unlink("\(directory)/balloon")
      unsafe unlink("\(directory)/air-\(round)")
      try await publish(try writer.flush(), of: writer, signer)
    }
    let trust = try LogTrust(origin: writer.origin, key: signer.key, policy: .none)
    let verdict = try await LogView.verify(
      writer.directory, trusting: trust, since: [], progress: { _, _ in }, entry: { _, _ in })
    say("verified \(try verdict.get().checkpoint.checkpoint.size == writer.size)")
  }

  /// Appends until there is no room.
  private static func fill(_ writer: LogWriter, _ signer: NoteSigner, _ round: Int) async throws {
    let air = [UInt8](repeating: 1, count: 4 << 20)
    let file = unsafe open("\(writer.directory.path)/../air-\(round)", O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
    _ = unsafe Glibc.write(file, air, air.count)
    close(file)
    while true {
      for _ in 0..<40 { _ = try writer.append([UInt8](repeating: UInt8(round), count: 4000)) }
      do throws(LogError) {
        _ = try writer.flush()
      } catch {
        return say("refused \(error.code.rawValue)")
      }
      try await publish(writer.flushed, of: writer, signer)
    }
  }

  private static func say(_ line: String) {
    let bytes = Array("\(line)\n".utf8)
    if unsafe Glibc.write(STDOUT_FILENO, bytes, bytes.count) != bytes.count { _exit(1) }
  }

  private static func complain(_ line: String) -> Never {
    let bytes = Array("\(line)\n".utf8)
    _ = unsafe Glibc.write(STDERR_FILENO, bytes, bytes.count)
    _exit(1)
  }
}
