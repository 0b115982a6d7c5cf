import AccountEvents
import HTTPClient

@testable import AppleID

extension Subject {
  /// Whatever the token endpoint answers, it means the same each time, and an error repeats nothing that was sent.
  ///
  /// The first byte is for the status: mostly 400, else 429 or what follows.
  static func checkTokens(_ bytes: [UInt8]) throws(BrokenPromise) {
    guard let first = bytes.first else { return }
    let body = Array(bytes.dropFirst())
    let tokens = (0..<2).map { _ in Result { () throws(AppleTokenError) in try GrantedTokens(reading: body) } }
    switch (tokens[0], tokens[1]) {
    case (.success(let tokens), .success(let again)):
      try promise("the tokens are the same", tokens == again)
      try promise("they live for a while", .seconds(1) ... .seconds(31_536_000) ~= tokens.lifetime)
      try promise("a token is not shown", "\(tokens.accessToken)" == "«redacted»")
    case (.failure(let error), .failure(let again)):
      try promise("the fault is the same", error.description == again.description)
      try promise("the fault is the answer's", error.code == .malformedAnswer)
    default: try promise("it is read or not, each time", false)
    }

    let status = first < 200 ? 400 : Int(first) * 3 - 171
    let secret = "r5f7b3a9c.0"
    let error = AppleTokenError(
      HTTPClientResponse(status: status, headers: [], body: body), hiding: [secret])
    try promise("it does not repeat what was sent", !error.description.contains(secret))
    try promise("it is printable", error.description.utf8.allSatisfy { 0x20..<0x7f ~= $0 })
    try promise("it is short", error.description.utf8.count < 512)
  }
}

extension Subject {
  /// Whatever the migration endpoint answers, it means the same each time, and an error repeats nothing of it but a word.
  ///
  /// The first byte is for the status: 400, 401, 403, else 429 or what follows.
  static func checkMigration(_ bytes: [UInt8]) throws(BrokenPromise) {
    guard let first = bytes.first else { return }
    let body = Array(bytes.dropFirst())
    try check("user", body) { body throws(AppleTokenError) in try TransferredUser(reading: body) }
    try check("identifier", body) { body throws(AppleTokenError) in try TransferSubject(reading: body) }

    let status = first < 100 ? 400 : first < 150 ? 401 : first < 200 ? 403 : Int(first) * 3 - 171
    let error = AppleTokenError(toBearer: HTTPClientResponse(status: status, headers: [], body: body))
    try promise("it tells no address", !error.description.contains("@"))
    try promise("it is printable", error.description.utf8.allSatisfy { 0x20..<0x7f ~= $0 })
    try promise("it is short", error.description.utf8.count < 128)
  }

  private static func check<Value: Equatable>(
    _ name: String, _ body: [UInt8], _ read: ([UInt8]) throws(AppleTokenError) -> Value
  ) throws(BrokenPromise) {
    let values = (0..<2).map { _ in Result { () throws(AppleTokenError) in try read(body) } }
    switch (values[0], values[1]) {
    case (.success(let value), .success(let again)): try promise("the \(name) is the same", value == again)
    case (.failure(let error), .failure(let again)):
      try promise("the fault is the same", error.description == again.description)
      try promise("the fault is the answer's", error.code == .malformedAnswer)
      try promise("the fault is short", error.description.utf8.count < 128)
    default: try promise("the \(name) is read or not, each time", false)
    }
  }
}
