package import AccountEvents
package import EventLoop
import JSON

/// The file that keeps Apple's last set, so that a restart while Apple is down still verifies.
///
/// It holds what Apple answered, when, since when we have which key, the keys that Apple has no more, and the address that
/// was asked: the keys of a rehearsal are never taken for Apple's. Whatever is read back is judged as strictly as if it came from outside, and so is the file itself: whoever
/// can write it could have anything believed.
package struct AppleKeysCache: Sendable {
  private static let limits = JSONLimits(
    bytes: AppleKeySet.maximumSize + 4096 + AppleKeySet.maximumCount * 2048, depth: 9, members: 32)

  private let file: DurableFile
  private let source: String
  private let thread: BlockingThread

  /// A cache in the file at `path`, whose directory must be there. `source` is the address that the keys come from;
  /// files are read and written on `thread`.
  package init(path: String, source: String, thread: BlockingThread) {
    (file, self.source, self.thread) = (DurableFile(path: path), source, thread)
  }

  /// The set that was kept, and when Apple gave it; nil where none was ever kept.
  package func load() async throws(AppleKeysFailure) -> (set: AppleKeySet, fetchedAt: Timestamp)? {
    let content = await thread.run { [file] in
      Result { () throws(DurableFile.Fault) in try file.read(upTo: Self.limits.bytes) }
    }
    let bytes: [UInt8]?
    do {
      bytes = try content.get()
    } catch {
      throw AppleKeysFailure(.cacheUnusable, "\(error)")
    }
    return if let bytes { try read(bytes) } else { nil }
  }

  /// Keeps what Apple answered, and was read as `set`. Returns once it would survive a power failure.
  func store(_ answer: [UInt8], of set: AppleKeySet, fetchedAt: Timestamp) async throws(AppleKeysFailure) {
    var bytes = Array(#"{"source":"#.utf8)
    JSON.append(source, to: &bytes)
    bytes += #","fetchedAt":"#.utf8
    JSON.append(fetchedAt.milliseconds, to: &bytes)
    bytes += #","firstSeen":{"#.utf8
    for (index, key) in set.signingKeys.enumerated() {
      if index > 0 { bytes.append(UInt8(ascii: ",")) }
      JSON.append(key.id.text, to: &bytes)
      bytes.append(UInt8(ascii: ":"))
      JSON.append(key.firstSeen.milliseconds, to: &bytes)
    }
    bytes += #"},"retired":["#.utf8
    for (index, old) in set.retiredKeys.enumerated() {
      if index > 0 { bytes.append(UInt8(ascii: ",")) }
      bytes += #"{"kid":"#.utf8
      JSON.append(old.key.id.text, to: &bytes)
      bytes += #","n":"#.utf8
      JSON.append(old.key.modulus, to: &bytes)
      bytes += #","firstSeen":"#.utf8
      JSON.append(old.key.firstSeen.milliseconds, to: &bytes)
      bytes += #","lastSeen":"#.utf8
      JSON.append(old.lastSeen.milliseconds, to: &bytes)
      bytes += #","missedSince":"#.utf8
      JSON.append(old.missedSince.milliseconds, to: &bytes)
      bytes.append(UInt8(ascii: "}"))
    }
    bytes += #"],"answer":"#.utf8
    bytes += answer  // it was read as JSON: it can stand within JSON as it is
    bytes += "}\n".utf8
    let result = await thread.run { [file, bytes] in
      Result { () throws(SystemError) in try file.replace(with: bytes) }
    }
    do {
      try result.get()
    } catch {
      throw AppleKeysFailure(.cacheUnwritable, "\(error)")
    }
  }

  private func read(_ bytes: [UInt8]) throws(AppleKeysFailure) -> (set: AppleKeySet, fetchedAt: Timestamp) {
    var kept: (source: String?, fetchedAt: Int64?, answer: Range<Int>?)
    var firstSeen: [(id: String, milliseconds: Int64)] = []
    var retired: [WrittenRetiredKey] = []
    do {
      try unsafe JSONReader.read(bytes.span.bytes, Self.limits) { reader throws(JSONError) in
        try reader.readObject { name, value throws(JSONError) in
          switch name {
          case "source": kept.source = try value.readString()
          case "fetchedAt": kept.fetchedAt = try value.readInteger()
          case "firstSeen":
            try value.readObject { name, value throws(JSONError) in firstSeen.append((name, try value.readInteger())) }
          case "retired":
            try value.readArray { element throws(JSONError) in retired.append(try WrittenRetiredKey(from: &element)) }
          case "answer": kept.answer = try value.readRaw()
          default: break
          }
        }
      }
    } catch {
      throw AppleKeysFailure(.cacheUnusable, "\(error)")
    }
    guard let answer = kept.answer, let fetchedAt = kept.fetchedAt.flatMap(Timestamp.init(milliseconds:)) else {
      throw AppleKeysFailure(.cacheUnusable, "the file is not of our form")
    }
    guard kept.source == source else { throw AppleKeysFailure(.cacheUnusable, "the keys come from another address") }
    do {
      let answer = unsafe bytes.span.bytes.extracting(answer)
      var set = try AppleKeySet(reading: answer, at: fetchedAt, after: .none)
      for (id, milliseconds) in firstSeen {
        guard let id = KeyID(id), let time = Timestamp(milliseconds: milliseconds) else {
          throw AppleKeysFailure(.cacheUnusable, "the file is not of our form")
        }
        set.note(id, seen: time)
      }
      for old in retired {
        guard let key = old.key else { throw AppleKeysFailure(.cacheUnusable, "the file is not of our form") }
        try set.note(retired: key)
      }
      return (set, fetchedAt)
    } catch let failure as AppleKeysFailure {
      throw failure
    } catch {
      throw AppleKeysFailure(.cacheUnusable, "\(error)")
    }
  }
}

/// A key that Apple has no more, as the file has it.
private struct WrittenRetiredKey {
  private var id, modulus: String?
  private var firstSeen, lastSeen, missedSince: Int64?

  init(from reader: inout JSONReader) throws(JSONError) {
    try reader.readObject { name, value throws(JSONError) in
      switch name {
      case "kid": id = try value.readString()
      case "n": modulus = try value.readString()
      case "firstSeen": firstSeen = try value.readInteger()
      case "lastSeen": lastSeen = try value.readInteger()
      case "missedSince": missedSince = try value.readInteger()
      default: break
      }
    }
  }

  /// Nil where it has not the form in which it is written.
  var key: AppleKeySet.RetiredKey? {
    guard let id = id.flatMap(KeyID.init), let modulus,
      let firstSeen = firstSeen.flatMap(Timestamp.init(milliseconds:)),
      let lastSeen = lastSeen.flatMap(Timestamp.init(milliseconds:)),
      // Files of versions that noted no such time say when it was seen last.
      let missedSince = Timestamp(milliseconds: missedSince ?? lastSeen.milliseconds),
      let key = AppleSigningKey(id: id, modulus: modulus, firstSeen: firstSeen)
    else { return nil }
    return AppleKeySet.RetiredKey(key: key, lastSeen: lastSeen, missedSince: missedSince)
  }
}
