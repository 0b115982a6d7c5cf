import JSON

/// What a service answers to an order: nothing but what is agreed, so that it can be kept without holding a person.
struct ErasureAnswer {
  enum State: String {
    case erased
    case inProgress = "in-progress"
  }

  /// More bytes are not read.
  static let largest = 1024

  let state: State
  /// How many were erased, where the service counts.
  let affected: Int?
  /// How many it has found afterwards, where it has looked.
  let found: Int?

  /// Nil for anything else than `{"state":…}` with `affected` and `found` or without.
  init?(_ body: [UInt8]) {
    do throws(JSONError) {
      let limits = JSONLimits(bytes: Self.largest, depth: 2, members: 3)
      var state: String?
      var counts: [String: Int64] = [:]
      try unsafe JSONReader.read(body.span.bytes, limits) { reader throws(JSONError) in
        try reader.readObject { name, value throws(JSONError) in
          switch name {
          case "state": state = try value.readString()
          case "affected": counts["affected"] = try value.readInteger()
          case "found": counts["found"] = try value.readInteger()
          default: throw JSONError(.malformed, at: value.offset)
          }
        }
      }
      guard let state = state.flatMap(State.init), counts.values.allSatisfy({ $0 >= 0 }) else { return nil }
      (self.state, affected, found) = (state, counts["affected"].map { Int($0) }, counts["found"].map { Int($0) })
    } catch {
      return nil
    }
  }
}
