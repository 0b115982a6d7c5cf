import AccountEvents
import Configuration

/// `--account TEAM/SUB`: whose account is meant.
struct AccountOption {
  private let text: String?

  init(reading arguments: inout CommandArguments, _ help: String) {
    text = arguments.readIfPresent(
      "--account", "TEAM/SUB", .account, "\(help) With - it is read from the standard input, and no shell keeps it.")
  }

  /// Whether an account is meant.
  var isGiven: Bool { text != nil }

  /// The account; nil where the standard input does not name one, which was said then.
  func read() -> Account? {
    let account = Account(key: text == "-" ? readLine(strippingNewline: true) ?? "" : text ?? "")
    if account == nil {
      Terminal.complain("siwa: --account: expected a Team ID and a sub with a slash between on the standard input")
    }
    return account
  }
}

extension SettingType where Value == String {
  fileprivate static var account: SettingType {
    SettingType(
      "account", expected: "a Team ID and a sub with a slash between, or -", standIn: "-", show: { $0 },
      parse: { $0 == "-" || Account(key: $0) != nil ? $0 : nil })
  }
}
