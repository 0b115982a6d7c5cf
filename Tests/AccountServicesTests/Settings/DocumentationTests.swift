import AccountServices
import Configuration
import Cryptography
import Foundation
import TestSupport
import Testing
import TransparencyLog

/// What is said about the settings must be what the settings are.
@Suite struct DocumentationTests {
  private let directory = TemporaryDirectory()
  private let schema = ConfigurationSchema.siwa
  /// What cannot be set beside what the example sets.
  private static let alternatives = ["store.postgresql", "audit-log.signer", "audit-log.public-key"]

  /// The report on deploy/siwa.yaml, changed, in a place where the files that it names exist.
  private func check(_ change: (Substring) -> String) throws -> ConfigurationReport {
    let example = String(decoding: try Repository.bytes("deploy/siwa.yaml"), as: UTF8.self)
    _ = directory.write("fullchain.pem", SelfSignedCertificate.sample.certificatePEM)
    _ = directory.write("key.pem", SelfSignedCertificate.sample.privateKeyPEM)
    _ = directory.write("rehearsal-ca.pem", "")
    _ = directory.write("kafka-password", "secret")
    for id in ["ABC123DEFG", "DEF456GHJK"] {
      _ = directory.write("AuthKey_\(id).p8", try P256PrivateKey().pem())
    }
    _ = directory.write("newsletter-secret", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    _ = directory.write("email-relay-token", "a-token-of-more-than-thirty-two-characters")
    _ = directory.write("master-key", String(repeating: "A", count: 43) + "\n")
    for file in ["audit-key", "audit-key-before"] {
      _ = directory.write(file, try NoteSigner.generate(name: "example.com/siwa-audit").text)
    }
    _ = directory.write("master-key-before", "B" + String(repeating: "A", count: 42) + "\n")
    let lines = example.split(separator: "\n", omittingEmptySubsequences: false).map(change)
    let text = lines.joined(separator: "\n").split(separator: "tls/", omittingEmptySubsequences: false).joined()
    return schema.check(ConfigurationSources(file: directory.write("siwa.yaml", text)))
  }

  @Test func theExampleIsWithoutFaults() throws {
    let report = try check { String($0) }
    #expect(report.isUsable, "\(report)")
    #expect(report.programs.flatMap(\.warnings) == [])
  }

  @Test func theExampleHasEverySettingWithItsDefault() throws {
    // Prose has a space after its #.
    let report = try check { line in
      let parts = line.split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false)
      let isAlternative = Self.alternatives.contains { line.hasPrefix("  #\($0.split(separator: ".")[1]): ") }
      if isAlternative { return String(line) }
      let isSetting = parts.count == 2 && parts[0].allSatisfy { $0 == " " } && parts[1].first?.isLetter == true
      return isSetting ? String(parts[0] + parts[1]) : String(line)
    }
    #expect(report.isUsable, "\(report)")
    let values = Dictionary(
      report.programs.flatMap(\.settings).map { ($0.path, $0) }, uniquingKeysWith: { first, _ in first })
    for declaration in schema.declarations
    where !declaration.path.contains("{") && !Self.alternatives.contains(declaration.path) {
      let value = try #require(values[declaration.path], "\(declaration.path) is missing")
      #expect(value.origin != .preset, "\(declaration.path) is missing")
      if case .value(let preset) = declaration.preset { #expect(value.value == preset) }
    }
  }

  @Test func theDocumentedConsumerIsTheOneThatIsBuilt() throws {
    guard let bytes = try? Repository.bytes("docs/own-consumer.md") else { return }
    let program = String(decoding: try Repository.bytes("Tests/OwnConsumer/Main.swift"), as: UTF8.self)
    #expect(String(decoding: bytes, as: UTF8.self).contains("```swift\n\(program)```\n"))
    #expect(program.split(separator: "\n").count <= 35)
  }

  /// The page shows the table between two comments; `siwa config list` prints it.
  @Test func thePageOfTheSettingsHasTheirTable() throws {
    guard let bytes = try? Repository.bytes("docs/settings.md") else { return }
    let page = String(decoding: bytes, as: UTF8.self)
    let parts = page.split(separator: "<!-- settings -->\n", omittingEmptySubsequences: false)
    try #require(parts.count == 3, "the table stands between two lines <!-- settings -->")
    #expect(parts[1] == schema.markdownTable)
  }

  @Test func everyLinkLeadsToAFileAndAHeading() throws {
    guard (try? Repository.bytes("README.md")) != nil else { return }
    let pages = try FileManager.default.contentsOfDirectory(atPath: Repository.root + "/docs")
      .filter { $0.hasSuffix(".md") }.map { "docs/\($0)" }
    #expect(pages.count > 10)
    for page in ["README.md"] + pages {
      let folder = page.hasPrefix("docs/") ? "\(Repository.root)/docs" : Repository.root
      for link in try prose(of: page).matches(of: #/\]\(([^)#\s]*)(?:#([^)\s]+))?\)/#) where !link.1.contains("://") {
        let target = link.1.isEmpty ? Repository.root + "/" + page : folder + "/" + link.1
        #expect(FileManager.default.fileExists(atPath: target), "\(page): \(link.0)")
        guard let heading = link.2 else { continue }
        let path = URL(fileURLWithPath: target).standardizedFileURL.path
        let headings = try prose(of: String(path.dropFirst(Repository.root.count + 1)))
          .matches(of: #/(?m)^#+ (.*)$/#).map { Self.anchor(of: $0.1) }
        #expect(headings.contains(String(heading)), "\(page): \(link.0)")
      }
    }
  }

  /// A page without its blocks of code.
  private func prose(of page: String) throws -> String {
    String(decoding: try Repository.bytes(page), as: UTF8.self).replacing(#/(?ms)^ *```.*?^ *```/#, with: "")
  }

  /// The anchor that GitHub makes of a heading.
  private static func anchor(of heading: Substring) -> String {
    heading.lowercased().filter { $0.isLetter || $0.isNumber || " -_".contains($0) }.replacing(" ", with: "-")
  }

  /// The tables of what Apple asks name the tests that show it, in their last column.
  @Test(arguments: ["identity-token.md", "account-deletion.md"])
  func everyTestThatATableNamesIsThere(page: String) throws {
    guard let bytes = try? Repository.bytes("docs/\(page)") else { return }
    var names: Set<Substring> = []
    for row in String(decoding: bytes, as: UTF8.self).split(separator: "\n") where row.hasPrefix("| ") {
      guard let column = row.dropLast().split(separator: "|").last else { continue }
      for (index, name) in column.split(separator: "`", omittingEmptySubsequences: false).enumerated()
      where index % 2 == 1 { names.insert(name) }
    }
    #expect(names.count > 10)
    let folder = Repository.root + "/Tests"
    let tests = try FileManager.default.subpathsOfDirectory(atPath: folder).filter { $0.hasSuffix("Tests.swift") }
      .map { String(decoding: try Repository.bytes("Tests/\($0)"), as: UTF8.self) }
    for name in names { #expect(tests.contains { $0.contains("func \(name)(") }, "\(name)") }
  }
}
