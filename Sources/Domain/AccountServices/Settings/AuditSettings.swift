package import Configuration
package import TransparencyLog

/// What `siwa audit` knows of the audit log where the command line does not say it.
package struct AuditSettings: Configurable {
  /// A consumer that an operator may do without.
  private enum Consumer: String, CaseIterable {
    case tokenRevoker = "token-revoker"
    case dataEraser = "data-eraser"
    case emailRelay = "email-relay"
  }

  /// The directory of the log, or a bundle of it.
  package var log: String
  /// The log's first key; nil where nobody has said it.
  package var key: VerifierKey?
  /// The witnesses that count.
  package var witnesses: [VerifierKey]
  /// How many of them have to have cosigned; nil for all.
  package var quorum: Int?
  /// The consumers that are not run here.
  package var absent: ConsumerSet

  /// Reads `audit`.
  package init(reading settings: inout Settings) {
    log = settings.read(
      "audit.log", .path, default: "/var/lib/siwa/audit-log",
      "The log that siwa audit reads: its directory, or a bundle of it.")
    key = settings.readIfPresent(
      "audit.key", .logKey,
      "The log's first key, as siwa audit create-key has printed it: whatever siwa audit believes, it believes by this key."
    )
    witnesses =
      settings.readIfPresent(
        "audit.witnesses", .list(of: .witnessKey, count: 1...32), "Keys of witnesses, as vkeys.") ?? []
    quorum = settings.readIfPresent(
      "audit.quorum", .integer(0...32, unit: "witnesses"),
      "How many of the witnesses have to have cosigned a checkpoint; without it, all.")
    let absent = settings.readIfPresent(
      "audit.without", .list(of: .choice(Consumer.self), count: 1...3),
      "Consumers that are not run here, so that siwa audit completeness does not wait for what they would do.")
    self.absent = ConsumerSet((absent ?? []).map { ConsumerSet($0.rawValue) })
  }
}

extension SettingType where Value == VerifierKey {
  /// The public key of a log.
  package static var logKey: SettingType { key(.note, "the public key of a log") }

  /// The public key of a witness.
  package static var witnessKey: SettingType { key(.cosignature, "the public key of a witness") }

  private static func key(_ kind: VerifierKey.Kind, _ words: String) -> SettingType {
    SettingType("vkey", expected: "\(words), as a vkey (name+id+key)", standIn: .sample, show: \.text) { text in
      do throws(LogError) {
        let key = try VerifierKey(text)
        return key.kind == kind ? key : nil
      } catch {
        return nil
      }
    }
  }
}

extension VerifierKey {
  /// Stands in for one where there is a fault.
  static var sample: VerifierKey {
    do throws(LogError) {
      return try VerifierKey("example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k")
    } catch {
      preconditionFailure("the sample is well-formed")
    }
  }
}
