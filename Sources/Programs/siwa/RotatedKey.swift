import AccountServices
import Configuration
import TransparencyLog

/// One of the two keys of `siwa audit rotate-key`: in a file, or behind a program that signs.
struct RotatedKey {
  private enum Place {
    case file(Secret)
    case program([String], VerifierKey)
    /// The arguments make no sense, which was said.
    case nowhere
  }

  private let place: Place

  /// Reads `--ROLE`, or `--ROLE-signer` and `--ROLE-vkey`.
  init(reading arguments: inout CommandArguments, _ role: String, _ help: String) {
    let (signer, vkey) = ("\(role)-signer", "\(role)-vkey")
    let file = arguments.readIfPresent(role, "FILE", .secret, "The file of \(help)")
    let command = arguments.readIfPresent(
      signer, "PROGRAM", .list(of: .text(1...4096), count: 1...32),
      "The program that signs with it where it is no file, and its arguments, with commas between."
    )
    let key = arguments.readIfPresent(vkey, "VKEY", .logKey, "The key of that program: as audit-log.public-key.")
    switch (file, command, key) {
    case (let file?, nil, nil): place = .file(file)
    case (nil, let command?, let key?): place = .program(command, key)
    default:
      arguments.refuse("\(role): expected either \(role) FILE, or \(signer) PROGRAM with \(vkey) VKEY")
      place = .nowhere
    }
  }

  /// What signs with it. Throws where the file holds no key.
  func signer() throws(LogError) -> any NoteSigning {
    switch place {
    case .file(let secret): try NoteSigner(secret.revealed)
    case .program(let command, let key): SigningProgram(command, key: key)
    case .nowhere: throw LogError(.malformed, "", "no key")
    }
  }
}
