package import AccountEvents
package import AccountStore
package import Cryptography
import JSON

/// What the sending team says of the files that it hands over: the text of a signed note, so that the recipient knows that they
/// are whole, and whose they are. It says how many users there are, and nothing of any of them.
package struct TransferManifest: Sendable, Hashable {
  /// A file beside the manifest.
  package struct File: Sendable, Hashable {
    /// Its name in the directory.
    package let name: String
    /// Its size in bytes.
    package let size: Int64
    /// The digest of its bytes, as they lie there.
    package let digest: SHA256Digest

    /// A file from its parts.
    package init(name: String, size: Int64, digest: SHA256Digest) {
      (self.name, self.size, self.digest) = (name, size, digest)
    }
  }

  /// The name of the file that it lies in.
  package static let name = "manifest.txt"
  /// The longest one that is read, in bytes.
  package static let longest = 65_536
  private static let title = "siwa-transfer/v1"
  private static let mostFiles = 16

  /// The plan of the sending team.
  package let plan: String
  /// The team that has had the app, and the one that gets it.
  package let sender: TeamID, recipient: TeamID
  /// The app.
  package let client: ClientID
  /// When the files were written.
  package let exportedAt: Timestamp
  /// How many users the files hold.
  package let done: Int64
  /// How many users had no identifier yet when they were written.
  package let waiting: Int64
  /// How many users get none, by the reason.
  package let refused: [TransferRefusal: Int64]
  /// The files, by name.
  package let files: [File]

  /// Why a text is no manifest.
  package struct Fault: Error, CustomStringConvertible {
    /// The line, counted from 1.
    package let line: Int
    /// What was expected there.
    package let expected: String
    /// For an operator.
    package var description: String { "line \(line) of the manifest: expected \(expected)" }
  }

  /// What is said of an export of the plan.
  package init(of plan: TransferPlan, _ census: TransferCensus, done: Int64, files: [File], at time: Timestamp) {
    (self.plan, sender, recipient, client) = (plan.name, plan.team, plan.otherTeam, plan.client)
    (exportedAt, self.done, waiting) = (time, done, census.waiting)
    refused = census.refused.filter { $0.value > 0 }
    self.files = files.sorted { $0.name < $1.name }
  }

  /// The text, in the one way to write it.
  package var text: [UInt8] {
    var lines = [
      Self.title, "plan \(plan)", "sender \(sender)", "recipient \(recipient)", "client \(client)",
      "exported \(exportedAt)", "done \(done)", "waiting \(waiting)",
    ]
    for reason in TransferRefusal.allCases {
      if let count = refused[reason] { lines.append("refused \(reason.rawValue) \(count)") }
    }
    for file in files { lines.append("file \(file.name) \(file.size) \(file.digest)") }
    return Array(lines.map { $0 + "\n" }.joined().utf8)
  }

  /// Reads the text of a note whose signature is verified.
  package init(_ text: [UInt8]) throws(Fault) {
    var lines = Lines(text)
    guard try lines.next(Self.title).isEmpty else { throw lines.expected(Self.title) }
    plan = try lines.value("plan") { TransferPlan.isName($0) ? $0 : nil }
    sender = try lines.value("sender") { TeamID($0) }
    recipient = try lines.value("recipient") { TeamID($0) }
    client = try lines.value("client") { ClientID($0) }
    exportedAt = try lines.value("exported") { Timestamp(rfc3339: $0) }
    done = try lines.value("done", Lines.count)
    waiting = try lines.value("waiting", Lines.count)
    var (refused, files) = ([TransferRefusal: Int64](), [File]())
    while lines.begins(with: "refused") {
      let entry = try lines.value("refused") { text -> (TransferRefusal, Int64)? in
        let words = text.split(separator: " ", omittingEmptySubsequences: false).map(String.init)
        guard words.count == 2, let reason = TransferRefusal(rawValue: words[0]), let count = Lines.count(words[1])
        else { return nil }
        return (reason, count)
      }
      guard refused.updateValue(entry.1, forKey: entry.0) == nil else { throw lines.expected("each reason once") }
    }
    while lines.begins(with: "file") {
      let file = try lines.value("file", Self.file)
      guard files.count < Self.mostFiles, !files.contains(where: { $0.name == file.name }) else {
        throw lines.expected("each file once, and no more than \(Self.mostFiles)")
      }
      files.append(file)
    }
    guard lines.isOver, !files.isEmpty else { throw lines.expected("a file, and nothing behind the files") }
    (self.refused, self.files) = (refused, files)
    guard self.text == text else { throw lines.expected("every line as it is written by `siwa migrate export`") }
  }

  /// A name that leads nowhere else, a size and a digest.
  private static func file(_ text: String) -> File? {
    let words = text.split(separator: " ", omittingEmptySubsequences: false).map(String.init)
    guard words.count == 3, let size = Lines.count(words[1]), let digest = SHA256Digest(hexadecimal: words[2]),
      1...64 ~= words[0].utf8.count, words[0].utf8.first != 0x2e,
      words[0].utf8.allSatisfy({ 0x61...0x7a ~= $0 || 0x30...0x39 ~= $0 || $0 == 0x2e || $0 == 0x2d })
    else { return nil }
    return File(name: words[0], size: size, digest: digest)
  }

  /// Lines that begin with a word.
  private struct Lines {
    private let lines: [String]
    private var place = 0

    init(_ text: [UInt8]) {
      lines = String(decoding: text, as: UTF8.self).split(separator: "\n", omittingEmptySubsequences: false)
        .map(String.init)
    }

    /// Behind the last newline there is nothing.
    var isOver: Bool { place == lines.count - 1 && lines[place].isEmpty }

    func expected(_ what: String) -> Fault { Fault(line: max(place, 1), expected: what) }
    func begins(with word: String) -> Bool { place < lines.count && lines[place].hasPrefix("\(word) ") }

    /// What stands behind the word in the next line.
    mutating func next(_ word: String) throws(Fault) -> Substring {
      defer { place += 1 }
      guard place < lines.count, lines[place].hasPrefix(word) else {
        throw Fault(line: place + 1, expected: word)
      }
      return lines[place].dropFirst(word.count)
    }

    mutating func value<Value>(_ word: String, _ parse: (String) -> Value?) throws(Fault) -> Value {
      let rest = try next("\(word) ")
      guard let value = parse(String(rest)) else { throw expected("\(word), and behind it what `siwa migrate` writes") }
      return value
    }

    static func count(_ text: String) -> Int64? {
      guard let number = Int64(text), String(number) == text, 0...1_000_000_000_000 ~= number else { return nil }
      return number
    }
  }
}

extension SHA256Digest {
  /// Nil unless `text` is 64 hexadecimal digits, the letters small.
  fileprivate init?(hexadecimal text: String) {
    guard let hash = AccountHash(text) else { return nil }
    self.init(bytes: hash.bytes)
  }
}
