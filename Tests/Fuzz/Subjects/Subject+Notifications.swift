import AccountEvents
import Cryptography
import Foundation

@testable import AppleID

extension Subject {
  /// A body gets the same verdict each time, and only what Apple signed is believed.
  static func checkNotification(_ bytes: [UInt8]) throws(BrokenPromise) {
    let verdicts = (0..<2).map { _ in unsafe Apple.verifier.verify(bytes.span.bytes, at: Apple.now, keys: Apple.keys) }
    switch (verdicts[0], verdicts[1]) {
    case (.refused(let refusal), .refused(let again)): try promise("the refusal is the same", refusal == again)
    case (.unknownKey(let id), .unknownKey(let again)):
      try promise("the key is the same, and one that Apple did not have", id == again && Apple.keys[id] == nil)
    case (.verified(let notification), .verified(let again)):
      let jws = String(decoding: notification.jws, as: UTF8.self)
      try promise("Apple signed it", Apple.notifications.contains("\"\(jws)\""))
      try promise("it means the same", notification.events == again.events)
    default: try promise("the verdict is the same", false)
    }
    guard let jws = jws(in: bytes) else { return }
    for part in jws.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false) {
      let text = String(decoding: part, as: UTF8.self)
      try promise("each part has one spelling", Base64URL.decode(text).map { Base64URL.encode($0) } == text)
    }
  }

  /// The JWS of a body that can be taken apart.
  private static func jws(in body: [UInt8]) -> [UInt8]? {
    do throws(Refusal) {
      return try unsafe UnverifiedNotification(body: body.span.bytes).jws.text
    } catch { return nil }
  }

  /// Claims that Apple signed are refused, or become events that we can write down and read again, or are those of an
  /// identity token: never both.
  static func checkClaims(_ bytes: [UInt8]) throws {
    let parts = bytes.split(separator: 0x0a, maxSplits: 1, omittingEmptySubsequences: false).map(Array.init)
    guard parts.count == 2 else { return }
    let jws = (parts.map { Base64URL.encode($0) } + ["AAAA"]).joined(separator: ".")
    let (token, again) = (Apple.identityToken(parts[1]), Apple.identityToken(parts[1]))
    try promise("it names the same person each time", token == again)
    try promise("who signs in has an app of ours", token.map { Apple.teams[$0.client] == $0.account.team } ?? true)
    let believed: [VerifiedNotification]
    do throws(Refusal) {
      let notification = try UnverifiedNotification(jws: Array(jws.utf8))
      believed = try [Apple.now, Apple.now].map { time throws(Refusal) in
        try Apple.verifier.believe(notification, by: Apple.signingKey, lastSeen: nil, at: time, acceptingLate: false)
      }
    } catch { return }
    try promise("a notification signs nobody in", token == nil)
    try promise("it means the same each time", believed[0].events == believed[1].events)
    try promise("it is for one of our apps", Apple.teams[believed[0].audience] == believed[0].team)
    try promise("it says something", !believed[0].events.isEmpty)
    for event in believed[0].events {
      switch event {
      case .known(let event):
        let record = EventRecord(event, jws: believed[0].jws)
        try promise("the event is read as it was written", try AccountEvent(decoding: record.value) == event)
      case .quarantined(let event):
        let record = EventRecord(event, jws: believed[0].jws)
        try promise("what is kept aside is a JSON object", Self.isObject(record.value))
      }
    }
    let ids = believed[0].events.map { event in
      switch event {
      case .known(let event): event.id
      case .quarantined(let event): event.id
      }
    }
    try promise("each event has an id of its own", Set(ids).count == ids.count)
  }
}

/// Apple as it was when it signed what lies in `Tests/TestSupport/Authentic/`, and the apps that it signed for.
private enum Apple {
  /// The moment at which one of the notifications is in time; the others' time is over or has not come.
  static let now = made { Timestamp(seconds: 1_657_617_152) }
  static let keys = made { try unsafe AppleKeySet(reading: file("jwks.json").span.bytes, at: now, after: .none) }
  static let signingKey = keys.signingKeys[0]
  static let notifications = String(decoding: file("notifications.json"), as: UTF8.self)
  static let teams = [
    app("jp.yauth.signin.app"): team("A1B2C3D4E5"), app("com.gameroasters.stack4"): team("A1B2C3D4E5"),
    app("com.example.app"): team("A1B2C3D4E5"), app("org.example.other"): team("Z9Y8X7W6V5"),
  ]
  static let verifier = NotificationVerifier(
    issuer: "https://appleid.apple.com", teams: teams, clockTolerance: .seconds(60))

  /// What the claims of an identity token say of a sign-in without a nonce; nil where they are none.
  static func identityToken(_ claims: [UInt8]) -> VerifiedIdentityToken? {
    let verifier = IdentityTokenVerifier(
      issuer: "https://appleid.apple.com", teams: teams, clockTolerance: .seconds(60))
    do throws(IdentityTokenRefusal) {
      return try verifier.believe(claims, of: ExpectedSignIn(to: app("com.example.app"), nonce: nil), at: now)
    } catch { return nil }
  }

  private static func file(_ name: String) -> [UInt8] {
    let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    return made { [UInt8](try Data(contentsOf: folder.appending(path: "../TestSupport/Authentic/\(name)"))) }
  }

  private static func app(_ name: String) -> ClientID { made { ClientID(name) } }

  private static func team(_ name: String) -> TeamID { made { TeamID(name) } }

  /// What every check needs.
  private static func made<Value>(_ make: () throws -> Value?) -> Value {
    do {
      guard let value = try make() else { fatalError("it cannot be made") }
      return value
    } catch { fatalError("\(error)") }
  }
}
