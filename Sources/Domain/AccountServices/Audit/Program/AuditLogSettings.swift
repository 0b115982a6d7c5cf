package import Configuration
package import EventLoop
package import HTTPClient
package import HTTPServer
package import TransparencyLog

/// Where the audit log is, who signs it, and who cosigns it.
package struct AuditLogSettings: Configurable {
  /// What signs checkpoints.
  package enum Signer: Sendable {
    /// A key of our own.
    case key(NoteSigner)
    /// Another program, started for each checkpoint, with the key that verifies what it signs.
    case program([String], VerifierKey)

    /// The key that verifies what is signed.
    package var key: VerifierKey {
      switch self {
      case .key(let signer): signer.key
      case .program(_, let key): key
      }
    }
  }

  /// A witness that cosigns.
  package struct Witness: Sendable {
    /// How it is called here: in logs and metrics.
    package let name: String
    /// Its submission prefix.
    package let url: HTTPClientURL
    /// The key that verifies its cosignatures.
    package let key: VerifierKey
  }

  /// The directory of the log.
  package var directory: String
  /// The log's name in its checkpoints.
  package var origin: String
  /// What signs checkpoints.
  package var signer: Signer
  /// The key that signed before, for as long as it signs, too.
  package var formerKey: NoteSigner?
  /// How long entries wait for a checkpoint at most.
  package var interval: Duration
  /// Who cosigns.
  package var witnesses: [Witness]
  /// How many of them have to have cosigned a checkpoint that stands in for the newest one.
  package var quorum: Int
  /// Where the log is served.
  package var listen: SocketAddress
  /// The certificate of that server; nil for plain HTTP.
  package var tls: TLSServerConfiguration?
  /// Where health and metrics are asked for.
  package var admin: SocketAddress
  /// How long the last checkpoint may take once it is told to end.
  package var drainDeadline: Duration

  /// Everything said, nothing assumed.
  package init(
    directory: String, origin: String, signer: Signer, formerKey: NoteSigner?, interval: Duration,
    witnesses: [Witness], quorum: Int, listen: SocketAddress, tls: TLSServerConfiguration?, admin: SocketAddress,
    drainDeadline: Duration
  ) {
    (self.directory, self.origin, self.signer, self.formerKey) = (directory, origin, signer, formerKey)
    (self.interval, self.witnesses, self.quorum, self.drainDeadline) = (interval, witnesses, quorum, drainDeadline)
    (self.listen, self.tls, self.admin) = (listen, tls, admin)
  }

  /// Reads `audit-log`. Where nothing signs, or the key is none, there is a fault, and `signer` is nothing to use.
  package init(reading settings: inout Settings) {
    directory = AuditLogDirectorySettings(reading: &settings).directory
    let origin = settings.read(
      "audit-log.origin", .origin,
      "The log's name in its checkpoints: the URL that it is published under, without scheme. It never changes.")
    let signer = Self.readSigner(&settings)
    (self.origin, self.signer) = (origin, signer ?? .program([], .sample))
    let former = settings.readIfPresent(
      "audit-log.former-private-key", .secret,
      "The key that private-key or signer replaces, which signs too until everybody who verifies has the new one.")
    formerKey = former.flatMap { Self.key($0, "audit-log.former-private-key", &settings) }
    if let name = [signer?.key, formerKey?.key].compactMap(\.self).map(\.name).first(where: { $0 != origin }) {
      settings.refuse("audit-log.origin", "a key of the log is named \(name); its name has to be the origin")
    }
    interval = settings.read(
      "audit-log.interval", .duration(.milliseconds(100) ... .seconds(3600)), default: .seconds(1),
      "How long entries wait for the next checkpoint, which costs a sync of the disk and a signature.")
    witnesses = settings.readEachIfPresent("audit-log.witnesses", .witnessName, named: "NAME") { settings, path, name in
      Witness(
        name: name,
        url: settings.read(
          "\(path).url", .httpURL, "The submission prefix of a witness (tlog-witness) that cosigns checkpoints."),
        key: settings.read(
          "\(path).key", .witnessKey, "The key that verifies its cosignatures, as a vkey: name+id+key."))
    }.map(\.value)
    quorum =
      settings.readIfPresent(
        "audit-log.quorum", .integer(1...32, unit: "witnesses"),
        "How many of the witnesses have to have cosigned a checkpoint that readers may go by while the newest one waits for them; without it, all."
      ) ?? witnesses.count
    if quorum > witnesses.count {
      settings.refuse("audit-log.quorum", "expected at most the number of audit-log.witnesses, \(witnesses.count)")
    }
    listen = settings.read(
      "audit-log.listen", .socketAddress, default: .loopback(port: 8447),
      "Where the log is served for who verifies it: read-only, and what stands in it is not secret to who reaches it.")
    let certificate = settings.readIfPresent(
      "audit-log.certificate", .file(), "The certificate and its chain for that, PEM; without it, plain HTTP.")
    let certificateKey = settings.readIfPresent(
      "audit-log.certificate-key", .file(isPrivate: true), "The certificate's private key, PEM, not encrypted.")
    admin = settings.read(
      "audit-log.admin", .socketAddress, default: .loopback(port: 9447),
      "Where its /livez, /readyz and /metrics are, without TLS.")
    drainDeadline = settings.read(
      "audit-log.drain", .duration(.zero ... .seconds(300)), default: .seconds(25),
      "How long the last checkpoint may take after SIGTERM.")
    if let certificate, let certificateKey {
      let files = TLSServerConfiguration(certificateFile: certificate, privateKeyFile: certificateKey)
      settings.check(files, certificate: "audit-log.certificate", privateKey: "audit-log.certificate-key")
      tls = files
    } else if certificate != nil || certificateKey != nil {
      let missing = certificate == nil ? "certificate" : "certificate-key"
      settings.refuse("audit-log.\(missing)", "missing; the certificate and its key belong together")
    }
    if admin == listen, admin.port != 0 {
      settings.refuse("audit-log.admin", "expected another address than audit-log.listen")
    }
    if !admin.isLoopback {
      settings.warn("audit-log.admin", "not a loopback address: whoever reaches it reads the metrics")
    }
  }

  private static func readSigner(_ settings: inout Settings) -> Signer? {
    let own = settings.readIfPresent(
      "audit-log.private-key", .secret,
      "The key that signs checkpoints, made by siwa audit create-key. Either this or signer.")
    let program = settings.readIfPresent(
      "audit-log.signer", .list(of: .text(1...4096), count: 1...32),
      "A program and its arguments that sign in place of private-key: the text of the checkpoint is its input, the signature line or the signature in base64 its output."
    )
    let publicKey = settings.readIfPresent(
      "audit-log.public-key", .logKey, "The key that verifies what signer signs, as a vkey: name+id+key.")
    switch (own, program, publicKey) {
    case (let own?, nil, _):
      if let key = Self.key(own, "audit-log.private-key", &settings) {
        if let publicKey, publicKey != key.key {
          settings.refuse("audit-log.public-key", "it is not that of audit-log.private-key, which is \(key.key)")
        }
        return .key(key)
      }
    case (nil, let program?, let publicKey?): return .program(program, publicKey)
    case (nil, _?, nil): settings.refuse("audit-log.public-key", "missing; expected the key of audit-log.signer")
    case (_?, _?, _): settings.refuse("audit-log.signer", "expected only one of this and audit-log.private-key")
    case (nil, nil, _):
      settings.refuse("audit-log.private-key", "missing; `siwa audit create-key` makes one. Or set audit-log.signer")
    }
    return nil
  }

  /// The key in a secret; nil where it is none: then there is a fault.
  private static func key(_ secret: Secret, _ path: String, _ settings: inout Settings) -> NoteSigner? {
    do throws(LogError) {
      return try NoteSigner(secret.revealed)
    } catch {
      settings.refuse(path, "expected a private key for notes (PRIVATE+KEY+…), as siwa audit create-key makes it")
      return nil
    }
  }
}

extension SettingType where Value == String {
  /// The name of a log: the first line of a checkpoint, and the name of its key.
  fileprivate static var origin: SettingType {
    SettingType(
      "name of a log", expected: "a URL without scheme, such as example.com/audit", standIn: "example.com/audit",
      show: { $0 },
      parse: { text in
        1...255 ~= text.utf8.count && text.utf8.allSatisfy { 0x21...0x7e ~= $0 && $0 != UInt8(ascii: "+") } ? text : nil
      })
  }

  fileprivate static var witnessName: SettingType {
    SettingType(
      "name", expected: "a name of 1 to 40 small letters, digits and hyphens", standIn: "sample", show: { $0 },
      parse: { text in
        1...40 ~= text.utf8.count
          && text.utf8.allSatisfy { 0x61...0x7a ~= $0 || 0x30...0x39 ~= $0 || $0 == 0x2d } ? text : nil
      })
  }
}
