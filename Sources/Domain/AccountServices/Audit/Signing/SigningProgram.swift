import Cryptography
import EventLoop
package import TransparencyLog

/// Another program that signs checkpoints, so that the key need not be where this one runs: in a hardware module, or with
/// another user.
///
/// It is started for each checkpoint, finds the text on its standard input, and answers with the signature line of a
/// signed note, or with the 64 bytes of an Ed25519 signature in base64.
package struct SigningProgram: NoteSigning {
  /// The key that verifies what it signs.
  package let key: VerifierKey
  private let program: ExternalProgram
  private let deadline: Duration

  /// As long as any line is.
  private static let longestAnswer = 4096

  /// The program that `command` names, which has to answer within `deadline`.
  package init(_ command: [String], environment: [String: String], key: VerifierKey, within deadline: Duration) {
    (self.key, self.deadline) = (key, deadline)
    program = ExternalProgram(command, environment: environment)
  }

  /// Has the text signed. Whether the signature is the key's is not judged here: `SignedNote.sign` does.
  package func sign(_ text: [UInt8]) async throws -> [UInt8] {
    let thread = BlockingThread(named: "signing-program")
    defer { thread.close() }
    let answer = try await thread.run { [program, deadline] in
      try program.answer(to: text, upTo: Self.longestAnswer, within: deadline)
    }
    guard let signature = signature(in: answer, of: text) else {
      throw LogError(.malformed, "", "the signing program answered neither a signature line nor a signature in base64")
    }
    return signature
  }

  private func signature(in answer: [UInt8], of text: [UInt8]) -> [UInt8]? {
    let line = answer.split { $0 == UInt8(ascii: "\n") || $0 == UInt8(ascii: "\r") }.first ?? []
    do throws(LogError) {
      let note = try SignedNote(text + [UInt8(ascii: "\n")] + line + [UInt8(ascii: "\n")])
      return note.signatures.first { $0.name == key.name && $0.keyID == key.id }?.bytes
    } catch {
      return Base64.decode(String(decoding: line, as: UTF8.self)).flatMap { $0.count == 64 ? $0 : nil }
    }
  }
}
