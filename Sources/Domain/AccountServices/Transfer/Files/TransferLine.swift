package import AccountEvents
package import AccountStore
import JSON

/// A user of a transfer as a line of a file: JSON, one object. What is handed over is the key and the transfer identifier, and
/// nothing else.
package enum TransferLine {
  /// The longest line that is read, in bytes.
  package static let longest = 4096
  private static let limits = JSONLimits(bytes: longest, depth: 1, members: 2)

  /// Why a line is no user: nothing of what it says.
  package enum Fault: String, Error, Sendable, CaseIterable, CustomStringConvertible {
    /// It is not of the form.
    case malformed = "not one JSON object with exactly the members that belong there, each a text"
    /// The key is none.
    case key = "key: expected 1 to 255 bytes without control characters"
    /// The key names the person.
    case personal = "key: holds a sub or an e-mail address: take what your own database knows the user by"
    /// The subject is none.
    case subject = "sub: expected 1 to 255 visible ASCII characters"
    /// The identifier is none.
    case transferSubject = "transfer_sub: expected 1 to 255 visible ASCII characters"

    /// The reason, for the operator.
    package var description: String { rawValue }
  }

  /// The line of a user who is handed over, with its end.
  package static func json(_ key: String, _ identifier: TransferSubject) -> [UInt8] {
    let line: JSONValue = ["key": .string(key), "transfer_sub": .string(identifier.text)]
    return line.bytes + [UInt8(ascii: "\n")]
  }

  /// The names of the columns, as RFC 4180 has them.
  package static let header = Array("\"key\",\"transfer_sub\"\r\n".utf8)

  /// The same user as a row of CSV, with its end.
  package static func csv(_ key: String, _ identifier: TransferSubject) -> [UInt8] {
    var row: [UInt8] = []
    for (index, text) in [key, identifier.text].enumerated() {
      if index > 0 { row.append(UInt8(ascii: ",")) }
      row.append(UInt8(ascii: "\""))
      for byte in text.utf8 {
        if byte == UInt8(ascii: "\"") { row.append(byte) }
        row.append(byte)
      }
      row.append(UInt8(ascii: "\""))
    }
    return row + Array("\r\n".utf8)
  }

  /// Whether a spreadsheet takes a field with this text for a formula. It stands in the file as it is: whoever wrote it finds
  /// their user by it.
  static func isFormula(_ text: String) -> Bool { text.utf8.first.map { "=+-@".utf8.contains($0) } ?? false }

  /// What the receiving team's own database needs: the one line with personal data. Its end is with it. Nil of a user whose
  /// row does not open.
  ///
  /// With a `choice` it is one of the two who came to one account, and says so; the person stands only with the one who has the
  /// account by it.
  package static func result(_ user: TransferUser, _ choice: TransferDecision.Choice? = nil) -> [UInt8]? {
    guard let subject = user.subject else { return nil }
    let isOwner = choice == nil || (user.state == .conflict) == (choice == .keepNew)
    let address = isOwner ? user.address : nil
    var members = [
      JSONValue.Member("key", .string(user.key)), JSONValue.Member("sub", isOwner ? .string(subject.text) : .null),
      JSONValue.Member("email", address.map { .string($0.text) } ?? .null),
      JSONValue.Member("is_private_email", .boolean(isOwner && user.isPrivate)),
    ]
    if let choice { members.append(JSONValue.Member("decision", .string(choice.rawValue))) }
    return JSONValue.object(members).bytes + [UInt8(ascii: "\n")]
  }

  /// A user who was handed over: `{"key":"…","transfer_sub":"…"}`.
  package static func received(_ line: [UInt8]) throws(Fault) -> NewTransferUser {
    let (key, text) = try read(line, "transfer_sub")
    guard let identifier = TransferSubject(text) else { throw .transferSubject }
    return NewTransferUser(key: try checked(key, unlike: text), transferSubject: identifier)
  }

  /// A user whom the operator brings: `{"key":"…","sub":"…"}`.
  package static func brought(_ line: [UInt8]) throws(Fault) -> NewTransferUser {
    let (key, text) = try read(line, "sub")
    guard let subject = AppleSubject(text) else { throw .subject }
    return NewTransferUser(key: try checked(key, unlike: text), subject: subject)
  }

  private static func checked(_ key: String, unlike person: String) throws(Fault) -> String {
    guard 1...255 ~= key.utf8.count, !key.unicodeScalars.contains(where: { $0.value < 0x20 || 0x7f...0x9f ~= $0.value })
    else { throw .key }
    guard !key.contains(person), !key.utf8.contains(UInt8(ascii: "@")), !holdsSubject(key) else { throw .personal }
    return key
  }

  /// Whether something of the form of Apple's subjects stands in the text, whomever it names: digits, 32 hexadecimal digits and
  /// digits, with dots between them.
  private static func holdsSubject(_ text: String) -> Bool {
    let parts = text.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    func isDigit(_ byte: UInt8?) -> Bool { byte.map { 0x30...0x39 ~= $0 } ?? false }
    return parts.indices.dropFirst().dropLast().contains { index in
      parts[index].count == 32 && parts[index].allSatisfy { isDigit($0) || 0x61...0x66 ~= $0 | 0x20 }
        && isDigit(parts[index - 1].last) && isDigit(parts[index + 1].first)
    }
  }

  private static func read(_ line: [UInt8], _ other: String) throws(Fault) -> (key: String, other: String) {
    var texts: [String: String] = [:]
    do throws(JSONError) {
      try unsafe JSONReader.read(line.span.bytes, limits) { reader throws(JSONError) in
        try reader.readObject { name, value throws(JSONError) in texts[String(name)] = try value.readString() }
      }
    } catch {
      throw .malformed
    }
    guard let key = texts["key"], let text = texts[other], texts.count == 2 else { throw .malformed }
    return (key, text)
  }
}
