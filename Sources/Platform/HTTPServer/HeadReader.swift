/// Reads the lines of a request's head as they arrive, and refuses what RFC 9112 lets a server refuse.
///
/// Two readers of one message must never see two messages. So: no folded lines, no bare CR or LF, no blank before a
/// colon, one Host, one Content-Length, never Content-Length beside Transfer-Encoding, no transfer coding but chunked.
/// Nor an empty line before a request: RFC 9112, section 2.2 would rather have one skipped, for clients of the nineties
/// that ended a body with it; some readers do (llhttp), some refuse it (h11), and where they differ we refuse.
struct HeadReader {
  enum Step: Equatable {
    /// The head is not complete yet.
    case incomplete
    /// The head ends before this offset.
    case complete(Int)
    case refused(MessageRefusal)
  }

  private let limit: Int
  private let fieldLimit: Int
  private var lineStart = 0
  private var scanned = 0
  private var hasRequestLine = false

  init(limit: Int, fieldLimit: Int) { (self.limit, self.fieldLimit) = (limit, fieldLimit) }

  mutating func reset() { (lineStart, scanned, hasRequestLine) = (0, 0, false) }

  /// Goes on with the bytes received so far, from the message's first byte to `end`.
  mutating func read(_ bytes: Span<UInt8>, end: Int, into head: inout RequestHead) -> Step {
    if end > 0, scanned == 0, !Characters.isToken(bytes[0]) {
      return .refused(.bad("a request begins with a method"))
    }
    let visible = min(end, limit)
    while scanned < visible {
      let byte = bytes[scanned]
      scanned += 1
      guard byte == 0x0a else { continue }
      let lineEnd = scanned - 2
      guard lineEnd >= lineStart, bytes[lineEnd] == 0x0d else { return .refused(.bad("a line ends with CR LF")) }
      let line = lineStart..<lineEnd
      lineStart = scanned
      if !hasRequestLine {
        hasRequestLine = true
        if let refusal = readRequestLine(bytes, line, &head) { return .refused(refusal) }
      } else if line.isEmpty {
        if let refusal = conclude(&head) { return .refused(refusal) }
        return .complete(scanned)
      } else if let refusal = readField(bytes, line, &head) {
        return .refused(refusal)
      }
    }
    return end >= limit
      ? .refused(MessageRefusal(status: 431, reason: "the request's head is too large")) : .incomplete
  }

  // request-line = method SP request-target SP HTTP-version
  private func readRequestLine(
    _ bytes: Span<UInt8>, _ line: Range<Int>, _ head: inout RequestHead
  ) -> MessageRefusal? {
    var index = line.lowerBound
    while index < line.upperBound, Characters.isToken(bytes[index]) { index += 1 }
    guard index > line.lowerBound, index < line.upperBound, bytes[index] == 0x20 else {
      return .bad("the request line begins with a method and one space")
    }
    guard index - line.lowerBound <= 32 else { return MessageRefusal(status: 501, reason: "no such method") }
    head.method = line.lowerBound..<index
    // What follows such a head is a tunnel to others, a body to us.
    if bytes.has(head.method, "CONNECT") { return MessageRefusal(status: 501, reason: "CONNECT is for proxies") }
    let targetStart = index + 1
    index = targetStart
    while index < line.upperBound, Characters.isTarget(bytes[index]) { index += 1 }
    guard index > targetStart, index < line.upperBound, bytes[index] == 0x20 else {
      return .bad("the request line holds one target of visible ASCII between two spaces")
    }
    let target = targetStart..<index
    let version = (index + 1)..<line.upperBound
    guard version.count == 8, bytes.has(version.lowerBound..<(version.lowerBound + 5), "HTTP/"),
      Characters.isDigit(bytes[version.lowerBound + 5]), bytes[version.lowerBound + 6] == UInt8(ascii: "."),
      Characters.isDigit(bytes[version.lowerBound + 7])
    else { return .bad("the request line ends with HTTP/1.1") }
    if bytes.has(version, "HTTP/1.0") {
      head.isHTTP11 = false
      head.keepsAlive = false
    } else if !bytes.has(version, "HTTP/1.1") {
      return MessageRefusal(status: 505, reason: "HTTP/1.1 is spoken here")
    }
    return readTarget(bytes, target, &head)
  }

  // origin-form, absolute-form (which a server must accept: RFC 9112, section 3.2.2), and `*` for OPTIONS.
  private func readTarget(_ bytes: Span<UInt8>, _ target: Range<Int>, _ head: inout RequestHead) -> MessageRefusal? {
    var start = target.lowerBound
    if bytes[start] != UInt8(ascii: "/") {
      if bytes.has(target, "*"), bytes.has(head.method, "OPTIONS") {
        head.path = target
        return nil
      }
      let scheme =
        target.count > 8 && bytes.hasIgnoringCase(start..<(start + 8), "https://")
        ? 8 : target.count > 7 && bytes.hasIgnoringCase(start..<(start + 7), "http://") ? 7 : 0
      guard scheme > 0 else { return .bad("the target is a path, or an http or https address") }
      start += scheme
      let authority = start
      while start < target.upperBound, bytes[start] != UInt8(ascii: "/") { start += 1 }
      guard start < target.upperBound, bytes.isAuthority(authority..<start) else {
        return .bad("an address in the target has a host and a path")
      }
    }
    var end = start
    while end < target.upperBound, bytes[end] != UInt8(ascii: "?") { end += 1 }
    head.path = start..<end
    if end < target.upperBound { head.query = (end + 1)..<target.upperBound }
    return nil
  }

  // field-line = field-name ":" OWS field-value OWS
  private func readField(_ bytes: Span<UInt8>, _ line: Range<Int>, _ head: inout RequestHead) -> MessageRefusal? {
    guard head.fields.count < fieldLimit else {
      return MessageRefusal(status: 431, reason: "the request has too many header fields")
    }
    if Characters.isBlank(bytes[line.lowerBound]) { return .bad("folded header fields are obsolete") }
    var index = line.lowerBound
    while index < line.upperBound, Characters.isToken(bytes[index]) { index += 1 }
    guard index > line.lowerBound, index < line.upperBound, bytes[index] == UInt8(ascii: ":") else {
      return .bad("a header field is a name, a colon and a value")
    }
    let name = line.lowerBound..<index
    let value = bytes.trimmed((index + 1)..<line.upperBound)
    for index in value where !Characters.isFieldValue(bytes[index]) {
      return .bad("a header field's value holds a control character")
    }
    head.fields.append(RequestHead.Field(name: name, value: value))
    return interpret(bytes, name, value, &head)
  }

  /// The fields that decide how the message is read on.
  private func interpret(
    _ bytes: Span<UInt8>, _ name: Range<Int>, _ value: Range<Int>, _ head: inout RequestHead
  ) -> MessageRefusal? {
    if bytes.hasIgnoringCase(name, "host") {
      if head.hasHost { return .bad("there is more than one Host") }
      head.hasHost = true
      // An address without a host makes a Host without a value (RFC 9112, section 3.2).
      guard value.isEmpty || bytes.isAuthority(value) else { return .bad("Host is not a host and a port") }
    } else if bytes.hasIgnoringCase(name, "content-length") {
      if head.hasContentLength { return .bad("there is more than one Content-Length") }
      head.hasContentLength = true
      guard !value.isEmpty, value.count <= 18 else { return .bad("Content-Length is not a number") }
      var length = 0
      for index in value {
        guard Characters.isDigit(bytes[index]) else { return .bad("Content-Length is not a number") }
        length = length * 10 + Int(bytes[index] - UInt8(ascii: "0"))
      }
      head.framing = .length(length)
    } else if bytes.hasIgnoringCase(name, "transfer-encoding") {
      if head.hasTransferEncoding { return .bad("there is more than one Transfer-Encoding") }
      head.hasTransferEncoding = true
      guard bytes.hasIgnoringCase(value, "chunked") else {
        return MessageRefusal(status: 501, reason: "the only transfer coding here is chunked")
      }
    } else if bytes.hasIgnoringCase(name, "connection") {
      readConnection(bytes, value, &head)
    } else if bytes.hasIgnoringCase(name, "expect") {
      guard bytes.hasIgnoringCase(value, "100-continue") else {
        return MessageRefusal(status: 417, reason: "the only expectation met here is 100-continue")
      }
      head.expectsContinue = true
    }
    return nil
  }

  private func readConnection(_ bytes: Span<UInt8>, _ value: Range<Int>, _ head: inout RequestHead) {
    var start = value.lowerBound
    while start <= value.upperBound {
      var end = start
      while end < value.upperBound, bytes[end] != UInt8(ascii: ",") { end += 1 }
      let option = bytes.trimmed(start..<end)
      if bytes.hasIgnoringCase(option, "close") {
        head.hasClose = true
      } else if bytes.hasIgnoringCase(option, "keep-alive"), !head.isHTTP11 {
        head.keepsAlive = true
      }
      start = end + 1
    }
  }

  /// What only the whole head can tell.
  private func conclude(_ head: inout RequestHead) -> MessageRefusal? {
    if head.isHTTP11, !head.hasHost { return .bad("HTTP/1.1 needs a Host") }
    if head.hasTransferEncoding {
      if head.hasContentLength { return .bad("Content-Length beside Transfer-Encoding") }
      if !head.isHTTP11 { return .bad("HTTP/1.0 has no Transfer-Encoding") }
      head.framing = .chunked
    }
    if head.hasClose { head.keepsAlive = false }
    if !head.isHTTP11 { head.expectsContinue = false }
    return nil
  }
}
