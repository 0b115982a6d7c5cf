import AccountEvents
import JSON

@testable import AccountServices

extension Subject {
  /// A mailer's question names accounts that can be asked for, and means the same as it is written again. A service's answer
  /// is one of few, with counts that can be counts.
  static func checkRequests(_ bytes: [UInt8]) throws(BrokenPromise) {
    if let accounts = unsafe RelayQuestion.accounts(in: bytes.span.bytes) {
      try promise("it names some, and not too many", 1...RelayEndpoint.mostAccounts ~= accounts.count)
      let members = accounts.map { account -> JSONValue in
        ["team": .string(account.team.text), "sub": .string(account.subject.text)]
      }
      let written = (["accounts": .array(members)] as JSONValue).bytes
      try promise("it means the same", unsafe RelayQuestion.accounts(in: written.span.bytes) == accounts)
    }
    if let answer = ErasureAnswer(bytes) {
      try promise("it is short", bytes.count <= ErasureAnswer.largest)
      try promise("nothing is counted below zero", (answer.affected ?? 0) >= 0 && (answer.found ?? 0) >= 0)
    }
  }
}
