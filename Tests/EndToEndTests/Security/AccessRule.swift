import CLibrdkafka
import Foundation
import TestSupport
import Testing

/// A line of the table of rights in docs/security.md: what a program may do with what.
struct AccessRule: Sendable, Hashable, CustomTestStringConvertible {
  enum Resource: String, Sendable {
    case topic
    case prefix = "topics that begin with"
    case group
  }

  /// The program, which is its user's name too, with hyphens for spaces.
  let program: String
  let resource: Resource
  let name: String
  let operation: String

  /// The principal as brokers know it.
  var principal: String { "User:\(Self.user(of: program))" }

  var testDescription: String { "\(program): \(operation) on \(name)" }

  static func user(of program: String) -> String { program.replacing(" ", with: "-") }

  /// All of the table, an operation each; `{consumer}` stands for each of the consumers.
  static func all() throws -> [AccessRule] {
    let page = try String(contentsOfFile: Repository.root + "/docs/security.md", encoding: .utf8)
    let table = try #require(page.components(separatedBy: "<!-- rights -->").dropFirst().first)
    let rows = table.split(separator: "\n").filter { $0.hasPrefix("| `") }
    return try rows.flatMap { row in
      let cells = row.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
      try #require(cells.count == 5, "\(row)")
      let resource = try #require(Resource(rawValue: cells[1]), "\(row)")
      let names = cells[2].split(separator: ",").map { $0.trimmingCharacters(in: CharacterSet(charactersIn: " `")) }
      let operations = cells[3].split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) }
      let program = cells[0].trimmingCharacters(in: CharacterSet(charactersIn: "`"))
      return names.flatMap(expand).flatMap { name in
        operations.map { AccessRule(program: program, resource: resource, name: name, operation: $0) }
      }
    }
  }

  private static func expand(_ name: String) -> [String] {
    guard name.contains("{consumer}") else { return [name] }
    return ["token-revoker", "data-eraser", "email-relay"].map { name.replacing("{consumer}", with: $0) }
  }
}
