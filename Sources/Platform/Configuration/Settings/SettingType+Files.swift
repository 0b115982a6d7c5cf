extension SettingType where Value == String {
  /// A path in the file system, which need not exist.
  ///
  /// In the configuration file a relative path starts from the file's own directory, elsewhere from the working one.
  public static var path: SettingType {
    SettingType(
      "path", expected: "a path", standIn: "", show: { $0 },
      parse: { input, _ throws(Misfit) in
        try input.path()
      })
  }

  /// The path of a file that can be read. `isPrivate` warns if everybody on the machine can.
  public static func file(isPrivate: Bool = false) -> SettingType {
    SettingType(
      isPrivate ? "path of a private file" : "path of a file", expected: "the path of a file that can be read",
      standIn: "", show: { $0 },
      parse: { input, warnings throws(Misfit) in
        let path = try input.path()
        do {
          let file = try ReadableFile(path)
          if isPrivate, file.isReadableByEveryone { warnings.append("everybody can read \(path)") }
        } catch {
          throw input.misfit("\(path) cannot be read: \(error)")
        }
        return path
      })
  }
}

extension SettingType where Value == Secret {
  /// A secret: its variable holds it; everywhere else stands the path of a file that holds it.
  ///
  /// A variable with `_FILE` at the end of its name names such a file too. A newline at the file's end, LF or CRLF, is not
  /// part of the secret.
  public static var secret: SettingType {
    SettingType(
      "secret", expected: "the path of a file that holds the secret", standIn: Secret(""), isSecret: true,
      show: \.description
    ) { input, warnings throws(Misfit) in
      if input.isSecretItself {
        let text = try input.text()
        guard !text.isEmpty else { throw input.misfit("expected a secret, found nothing") }
        return Secret(text)
      }
      // Not even the path is shown: it may be the secret itself, written where it should not be.
      let path = try input.path()
      do {
        let file = try ReadableFile(path)
        if file.isReadableByEveryone { warnings.append("everybody can read the file that it names") }
        var bytes = try file.bytes(upTo: maximumSecretSize)
        if bytes.last == UInt8(ascii: "\n") { bytes.removeLast() }
        if bytes.last == UInt8(ascii: "\r") { bytes.removeLast() }
        guard !bytes.starts(with: byteOrderMark) else {
          throw input.misfit("the file that it names begins with a byte order mark: keep the secret alone in it")
        }
        guard let secret = String(validating: bytes, as: UTF8.self) else {
          throw input.misfit("the file that it names is not UTF-8")
        }
        guard !secret.isEmpty else { throw input.misfit("the file that it names is empty") }
        return Secret(secret)
      } catch let misfit as Misfit {
        throw misfit
      } catch {
        throw input.misfit("the file that it names cannot be read: \(error)")
      }
    }
  }
}

private let maximumSecretSize = 65_536
/// What some editors put in front of UTF-8, and no server takes for a part of a password.
private let byteOrderMark: [UInt8] = [0xef, 0xbb, 0xbf]

extension SettingInput {
  fileprivate func path() throws(Misfit) -> String {
    let text = try text()
    guard !text.isEmpty, !text.utf8.contains(0) else { throw misfit() }
    return text.hasPrefix("/") ? text : directory + text
  }
}
