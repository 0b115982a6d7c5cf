/// Takes the chunked framing off a body, in place (RFC 9112, section 7.1).
///
/// The data moves down over the framing, so that the whole body ends up in one piece right behind the head.
struct ChunkReader {
  enum Step: Equatable {
    case incomplete
    /// The body is complete; the next message begins at this offset.
    case complete(next: Int)
    case refused(MessageRefusal)
  }

  private enum State {
    case size
    case extensionName
    case extensionValue
    case extensionQuoted
    case extensionEscape
    case extensionEnd
    case sizeEnd
    case data
    case dataCR
    case dataLF
    case trailerStart
    case trailerName
    case trailerValue
    case trailerLF
    case endLF
  }

  private static let framingLimit = 8192
  /// What a trailer must not say (RFC 9110, section 6.5.1): others might heed it, though we heed no trailer.
  private static let headFields = ["content-length", "host", "transfer-encoding"].map { Array($0.utf8) }

  private var state = State.size
  private var remaining = 0
  private var digits = 0
  /// Whether the name or the value in an extension has no character yet.
  private var isPartEmpty = true
  private var trailerName: [UInt8] = []
  /// Bytes of extensions and trailers so far: they carry nothing for us, so they may not go on for ever.
  private var ballast = 0
  private(set) var scanned: Int
  /// Where the next byte of data goes: the end of the body so far.
  private(set) var bodyEnd: Int

  init(start: Int) { (scanned, bodyEnd) = (start, start) }

  /// Goes on with the bytes received so far. `limit` bounds the body's data.
  mutating func read(_ bytes: inout MutableSpan<UInt8>, end: Int, start: Int, limit: Int) -> Step {
    while scanned < end {
      if state == .data {
        let count = min(remaining, end - scanned)
        if scanned != bodyEnd { for offset in 0..<count { bytes[bodyEnd + offset] = bytes[scanned + offset] } }
        bodyEnd += count
        scanned += count
        remaining -= count
        if remaining == 0 { state = .dataCR }
        continue
      }
      let byte = bytes[scanned]
      scanned += 1
      if let refusal = take(byte, room: limit - (bodyEnd - start)) { return .refused(refusal) }
      if isComplete { return .complete(next: scanned) }
    }
    return .incomplete
  }

  private var isComplete = false

  /// Tells the reader that everything behind the data so far was taken away.
  mutating func compacted() { scanned = bodyEnd }

  /// One byte of the framing.
  private mutating func take(_ byte: UInt8, room: Int) -> MessageRefusal? {
    switch state {
    case .size: return takeSize(byte, room)
    case .extensionName, .extensionValue, .extensionQuoted, .extensionEscape, .extensionEnd:
      return takeExtension(byte) ? takeBallast() : .bad("a chunk's extension is a name, perhaps with a value")
    case .sizeEnd:
      guard byte == 0x0a else { return .bad("a chunk's size ends with CR LF") }
      state = remaining == 0 ? .trailerStart : .data
      digits = 0
    case .data: preconditionFailure("data is moved in one piece")
    case .dataCR:
      guard byte == 0x0d else { return .bad("a chunk is longer than its size") }
      state = .dataLF
    case .dataLF:
      guard byte == 0x0a else { return .bad("a chunk ends with CR LF") }
      state = .size
    case .trailerStart:
      if byte == 0x0d {
        state = .endLF
      } else if Characters.isToken(byte) {
        state = .trailerName
        trailerName = [Characters.lowered(byte)]
      } else {
        return .bad("a trailer field begins with a name")
      }
    case .trailerName:
      if byte == UInt8(ascii: ":") {
        guard !Self.headFields.contains(trailerName) else { return .bad("a trailer field says what the head has said") }
        state = .trailerValue
      } else if Characters.isToken(byte) {
        trailerName.append(Characters.lowered(byte))
      } else {
        return .bad("a trailer field is a name, a colon and a value")
      }
      return takeBallast()
    case .trailerValue:
      if byte == 0x0d {
        state = .trailerLF
      } else if !Characters.isFieldValue(byte) {
        return .bad("a trailer field's value holds a control character")
      }
      return takeBallast()
    case .trailerLF:
      guard byte == 0x0a else { return .bad("a trailer field ends with CR LF") }
      state = .trailerStart
    case .endLF:
      guard byte == 0x0a else { return .bad("a chunked body ends with CR LF") }
      isComplete = true
    }
    return nil
  }

  private mutating func takeSize(_ byte: UInt8, _ room: Int) -> MessageRefusal? {
    if let value = Characters.hexValue(byte) {
      digits += 1
      guard digits <= 8 else { return .bad("a chunk's size has too many digits") }
      remaining = remaining << 4 | value
      if remaining > room { return MessageRefusal(status: 413, reason: "the body is too large") }
      return nil
    }
    guard digits > 0 else { return .bad("a chunk begins with its size") }
    switch byte {
    case 0x0d: state = .sizeEnd
    case UInt8(ascii: ";"): (state, isPartEmpty) = (.extensionName, true)
    default: return .bad("a chunk's size is a hexadecimal number")
    }
    return nil
  }

  // *( ";" token [ "=" ( token / quoted-string ) ] ), without the blanks that RFC 9112 calls bad.
  private mutating func takeExtension(_ byte: UInt8) -> Bool {
    switch (state, byte) {
    case (.extensionQuoted, UInt8(ascii: "\"")): state = .extensionEnd
    case (.extensionQuoted, UInt8(ascii: "\\")): state = .extensionEscape
    case (.extensionQuoted, _): return Characters.isFieldValue(byte)
    case (.extensionEscape, _):
      state = .extensionQuoted
      return Characters.isFieldValue(byte)
    case (.extensionName, UInt8(ascii: "=")) where !isPartEmpty: (state, isPartEmpty) = (.extensionValue, true)
    case (.extensionValue, UInt8(ascii: "\"")) where isPartEmpty: (state, isPartEmpty) = (.extensionQuoted, false)
    case (_, UInt8(ascii: ";")) where !isPartEmpty: (state, isPartEmpty) = (.extensionName, true)
    case (_, 0x0d) where !isPartEmpty: state = .sizeEnd
    case (.extensionEnd, _): return false
    default:
      isPartEmpty = false
      return Characters.isToken(byte)
    }
    return true
  }

  private mutating func takeBallast() -> MessageRefusal? {
    ballast += 1
    return ballast > Self.framingLimit ? .bad("a chunked body has too much around its data") : nil
  }
}
