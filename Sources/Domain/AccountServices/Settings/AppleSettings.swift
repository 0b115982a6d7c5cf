package import Configuration
package import HTTPClient

/// Where Apple is, and how far it is trusted: all of it can be somebody else's in a rehearsal.
package struct AppleSettings: Configurable, Equatable {
  /// The way to Apple.
  package enum Proxy: String, CaseIterable, Sendable {
    /// Straight to it.
    case none
    /// As the variables `https_proxy`, `all_proxy` and `no_proxy` say.
    case environment
  }

  /// Who must have issued what is believed.
  package var issuer: String
  /// Where the keys are fetched.
  package var keysURL: HTTPClientURL
  /// Where the keys are kept, so that a restart while Apple is down still verifies.
  package var keysFile: String
  /// How long keys are used before newer ones are asked for.
  package var keysRefresh: Duration
  /// How long Apple is not asked again after it was asked.
  package var keysPause: Duration
  /// How long one request to Apple may take.
  package var deadline: Duration
  /// How far Apple's clock and ours may lie apart.
  package var clockTolerance: Duration
  /// A PEM file with those who may vouch for Apple besides the authorities of the operating system.
  package var trustedCA: String?
  /// The way to Apple.
  package var proxy: Proxy

  /// Everything said, nothing assumed.
  package init(
    issuer: String, keysURL: HTTPClientURL, keysFile: String, keysRefresh: Duration, keysPause: Duration,
    deadline: Duration, clockTolerance: Duration, trustedCA: String?, proxy: Proxy
  ) {
    (self.issuer, self.keysURL, self.keysFile) = (issuer, keysURL, keysFile)
    (self.keysRefresh, self.keysPause) = (keysRefresh, keysPause)
    (self.deadline, self.clockTolerance, self.trustedCA, self.proxy) = (deadline, clockTolerance, trustedCA, proxy)
  }

  /// Reads `apple`.
  package init(reading settings: inout Settings) {
    issuer = settings.readAppleIssuer()
    keysURL = settings.read(
      "apple.keys", .httpURL, default: .apple("keys"), "Where Apple's public keys are fetched.")
    keysFile = settings.read(
      "apple.keys-file", .path, default: "/var/lib/siwa/apple-keys.json",
      "Where the keys are kept, so that a restart while Apple is down still verifies.")
    keysRefresh = settings.read(
      "apple.keys-refresh", .duration(.seconds(60) ... .seconds(86_400)), default: .seconds(3600),
      "How old the keys get before newer ones are fetched; while those cannot be had, the old ones serve.")
    keysPause = settings.read(
      "apple.keys-pause", .duration(.seconds(1) ... .seconds(3600)), default: .seconds(30),
      "How long after a fetch an unknown key causes no further one.")
    deadline = settings.readAppleDeadline()
    clockTolerance = settings.readClockTolerance()
    trustedCA = settings.readAppleTrustedCA()
    proxy = settings.readAppleProxy()
  }
}

// What more than one of the programs that speak to Apple read.
extension Settings {
  mutating func readAppleIssuer() -> String {
    read("apple.issuer", .text(1...255), default: "https://appleid.apple.com", "Who must have issued a notification.")
  }

  mutating func readClockTolerance() -> Duration {
    read(
      "apple.clock-tolerance", .duration(.zero ... .seconds(600)), default: .seconds(60),
      "How far Apple's clock and ours may lie apart.")
  }

  mutating func readAppleDeadline() -> Duration {
    read(
      "apple.deadline", .duration(.milliseconds(100) ... .seconds(60)), default: .seconds(5),
      "How long one request to Apple may take.")
  }

  mutating func readAppleTrustedCA() -> String? {
    readIfPresent(
      "apple.trusted-ca", .file(),
      "PEM file of authorities to trust beside the operating system's: for a rehearsal, where somebody plays Apple.")
  }

  mutating func readAppleProxy() -> AppleSettings.Proxy {
    read(
      "apple.proxy", .choice(AppleSettings.Proxy.self), default: .none,
      "The way to Apple: straight, or as the variables https_proxy, all_proxy and no_proxy say.")
  }
}

extension SettingType where Value == HTTPClientURL {
  /// An address that the client would ask.
  package static var httpURL: SettingType {
    SettingType(
      "URL", expected: "an https URL (http only to this machine), such as https://example.com/path",
      standIn: .apple("keys"), show: \.description, parse: { HTTPClientURL($0) })
  }
}

extension HTTPClientURL {
  /// One of Apple's own addresses.
  static func apple(_ name: String) -> HTTPClientURL {
    guard let url = HTTPClientURL("https://appleid.apple.com/auth/\(name)") else {
      preconditionFailure("Apple's own address is well-formed")
    }
    return url
  }
}
