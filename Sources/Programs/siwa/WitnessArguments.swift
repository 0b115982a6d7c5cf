import AccountServices
import Configuration
import TransparencyLog

/// The arguments that say what a log has to have beside its key's signature: witnesses, and a server that is the right one.
struct WitnessArguments {
  /// The witnesses that count.
  let witnesses: [VerifierKey]
  /// A file with a certificate that is believed of the log's server; nil for the system's own.
  let trustAnchor: String?
  private let quorum: Int?

  /// Reads them. `setting` names what says where the command line does not.
  init(reading arguments: inout CommandArguments, otherwise setting: String? = nil) {
    witnesses = arguments.readAll(
      "--witness", "VKEY", .witnessKey,
      "The key of a witness that counts; may be repeated\(setting.map { "; otherwise \($0)" } ?? "").")
    quorum = arguments.readIfPresent(
      "--quorum", "NUMBER", .integer(0...32, unit: "witnesses"),
      "How many of the witnesses have to have cosigned; without it, all.")
    trustAnchor = arguments.readIfPresent(
      "--trust", "FILE", .path, "PEM file with a certificate that is believed of the log's server, too.")
  }

  /// Trust in the log that a key names, if it has been cosigned by so many of the witnesses: all, where nothing is said.
  /// Nil where that makes no sense, which was said then.
  func trust(in key: VerifierKey, _ settings: AuditSettings? = nil) -> LogTrust? {
    let witnesses = witnesses.isEmpty ? settings?.witnesses ?? [] : witnesses
    do throws(LogError) {
      let policy = try WitnessPolicy(quorum ?? settings?.quorum ?? witnesses.count, of: witnesses)
      return try LogTrust(origin: key.name, key: key, policy: policy)
    } catch {
      Terminal.complain("siwa: --witness, --quorum: \(error.detail)")
      return nil
    }
  }
}
