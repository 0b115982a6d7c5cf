import Glibc

extension Subject {
  /// Whatever is sent, each answer is one that applications are told of, none says that something is broken here, and the
  /// connection comes to its end.
  static func checkEndpoint(_ bytes: [UInt8]) throws {
    let accounts = try AccountsOfFuzzing.shared.get()
    let answers = try accounts.answers(to: try accounts.filled(bytes))
    var rest = answers[...]
    while let head = rest.firstRange(of: Array("HTTP/1.1 ".utf8)) {
      rest = rest[head.upperBound...]
      let status = String(decoding: rest.prefix(3), as: UTF8.self)
      // A problem may speak of HTTP, too.
      guard status.utf8.allSatisfy({ 0x30...0x39 ~= $0 }) else { continue }
      try promise("an application knows what \(status) means", statuses.contains(status))
    }
    try promise("what is sent back is an answer", answers.isEmpty || answers.starts(with: Array("HTTP/1.1 ".utf8)))
  }

  /// Those of the OpenAPI document, and those of the server that are older than any document.
  private static let statuses: Set<String> = [
    "100", "200", "202", "400", "401", "403", "404", "405", "408", "409", "410", "413", "415", "417", "422", "429",
    "431",
    "501", "503", "505",
  ]
}
