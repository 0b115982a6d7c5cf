/// How much of JSON a reader takes before it refuses: without such bounds a small text could cost a lot.
public struct JSONLimits: Sendable, Hashable {
  /// The longest text, in bytes.
  public let bytes: Int
  /// How many objects and arrays may be open at once.
  public let depth: Int
  /// How many members one object may have.
  public let members: Int

  /// The limits of a reader. Reading is recursive, so the depth is at most 128.
  public init(bytes: Int, depth: Int, members: Int) {
    precondition(bytes <= Int32.max && depth <= 128, "no limit at all")
    (self.bytes, self.depth, self.members) = (bytes, depth, members)
  }
}
