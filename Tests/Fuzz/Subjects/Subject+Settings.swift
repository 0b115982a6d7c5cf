import AccountServices
import Foundation
import Synchronization

@testable import Configuration

extension Subject {
  /// A file becomes values or faults: what YAML means is the same once written otherwise, and our settings are read
  /// from it.
  static func checkSettings(_ bytes: [UInt8]) throws {
    let document = YAMLDocument(bytes)
    try promise("what cannot be read has a fault", document.isReadable || !document.faults.isEmpty)
    // Unicode has line ends of two bytes and more.
    let lines = bytes.count { $0 == 0x0a || $0 == 0x0d } + bytes.count / 2 + 1
    try promise("each fault is within the file", document.faults.allSatisfy { 1...lines ~= $0.line })
    if document.faults.isEmpty {
      let again = YAMLDocument(Array(document.root.flow.utf8))
      try promise("written otherwise it has no faults", again.faults.isEmpty)
      try promise("written otherwise it means the same", again.root.flow == document.root.flow)
    }
    guard document.isReadable else { return }
    let report = try file.withLock { file in
      try file.write(bytes)
      return schema.check(ConfigurationSources(file: file.path))
    }
    try promise("a file with faults configures nothing", document.faults.isEmpty || !report.isUsable)
    try promise("every fault has words", report.description.split(separator: "\n").count > report.faults.count)
  }

  private static let schema = ConfigurationSchema(prefix: "SIWA", defaultFile: "/dev/null")
    .adding("siwa-ingress", FuzzedConfiguration.self)
  private static let file = Mutex(ScratchFile())
}

extension YAMLNode {
  /// The node on one line, every text between quotation marks and in ASCII.
  fileprivate var flow: String {
    switch content {
    case .scalar(let text, _): isNull ? "~" : text.quotedForYAML
    case .sequence(let items): "[\(items.map(\.flow).joined(separator: ", "))]"
    case .mapping(let entries):
      "{\(entries.map { "? \($0.key.quotedForYAML) : \($0.value.flow)" }.joined(separator: ", "))}"
    }
  }
}

extension String {
  fileprivate var quotedForYAML: String {
    let scalars = unicodeScalars.map { scalar in
      let isPlain = 0x20..<0x7f ~= scalar.value && scalar != "\"" && scalar != "\\"
      let digits = String(scalar.value, radix: 16)
      return isPlain ? String(scalar) : "\\U" + String(repeating: "0", count: 8 - digits.count) + digits
    }
    return "\"\(scalars.joined())\""
  }
}

/// What the ingress reads, but for librdkafka's properties: librdkafka itself tries each, at ten milliseconds a file.
private struct FuzzedConfiguration: Configurable {
  init(reading settings: inout Settings) {
    _ = TeamsSettings(readingWithKeys: &settings)
    _ = AppleSettings(reading: &settings)
    _ = AppleTokenSettings(reading: &settings)
    _ = IngressSettings(reading: &settings)
    _ = LogSettings(reading: &settings)
  }
}

/// A file of this process's own, which is overwritten for each input.
private struct ScratchFile {
  let path =
    FileManager.default.temporaryDirectory.path + "/siwa-fuzz-\(ProcessInfo.processInfo.processIdentifier).yaml"

  func write(_ bytes: [UInt8]) throws { try Data(bytes).write(to: URL(fileURLWithPath: path)) }
}
