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
  /// A variable with `_FILE` at the end of its name names such a file too. A newline at the file's end is not part of
  /// the secret.
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
        guard let text = String(validating: try file.bytes(upTo: maximumSecretSize), as: UTF8.self) else {
          throw input.misfit("the file that it names is not UTF-8")
        }
        let secret = text.hasSuffix("\n") ? String(text.dropLast()) : text
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

extension SettingInput {
  fileprivate func path() throws(Misfit) -> String {
    let text = try text()
    guard !text.isEmpty, !text.utf8.contains(0) else { throw misfit() }
    return text.hasPrefix("/") ? text : directory + text
  }
}
