extension JSONValue {
  /// The value without white space, its members in their order.
  public var bytes: [UInt8] {
    var output: [UInt8] = []
    write(to: &output) { $0 }
    return output
  }

  /// The value in the canonical form of RFC 8785, which is the same wherever it is written: for hashes and signatures.
  public var canonicalBytes: [UInt8] {
    var output: [UInt8] = []
    write(to: &output) { members in
      // By UTF-16 code units (§3.2.3), which put U+10000 and above before U+E000, unlike Swift's own order.
      members.sorted { $0.name.utf16.lexicographicallyPrecedes($1.name.utf16) }
    }
    return output
  }

  private func write(to output: inout [UInt8], _ order: ([Member]) -> [Member]) {
    switch self {
    case .object(let members):
      precondition(Self.areDistinct(members), "a name comes twice")
      Self.write(order(members), between: ("{", "}"), to: &output) { member, output in
        JSON.append(member.name, to: &output)
        output.append(UInt8(ascii: ":"))
        member.value.write(to: &output, order)
      }
    case .array(let elements):
      Self.write(elements, between: ("[", "]"), to: &output) { element, output in element.write(to: &output, order) }
    case .string(let text): JSON.append(text, to: &output)
    case .integer(let value): JSON.append(value, to: &output)
    case .boolean(let value): output.append(contentsOf: value ? "true".utf8 : "false".utf8)
    case .null: output.append(contentsOf: "null".utf8)
    }
  }

  /// Few members, as there mostly are, are compared with each other: a set takes more than all else that is written.
  private static func areDistinct(_ members: [Member]) -> Bool {
    if members.count > 16 { return Set(members.map { Array($0.name.utf8) }).count == members.count }
    return members.indices.allSatisfy { index in
      let name = members[index].name.utf8
      return members[..<index].allSatisfy { $0.name.utf8.count != name.count || !$0.name.utf8.elementsEqual(name) }
    }
  }

  private static func write<Item>(
    _ items: [Item], between marks: (Unicode.Scalar, Unicode.Scalar), to output: inout [UInt8],
    _ write: (Item, inout [UInt8]) -> Void
  ) {
    output.append(UInt8(ascii: marks.0))
    for (index, item) in items.enumerated() {
      if index > 0 { output.append(UInt8(ascii: ",")) }
      write(item, &output)
    }
    output.append(UInt8(ascii: marks.1))
  }
}
