/// How far a group is in a partition, as its coordinator keeps it.
public struct CommittedOffset: Sendable, Hashable, ExpressibleByIntegerLiteral {
  /// The offset of the next record that is to be read.
  public let offset: Int64
  /// What the member that committed it has put beside it: at most 4,096 bytes, and no secret, since anybody who may
  /// describe the group can read it. Empty where there is nothing.
  public let note: String

  /// An offset with a note beside it.
  public init(_ offset: Int64, note: String = "") { (self.offset, self.note) = (offset, note) }

  /// An offset with nothing beside it.
  public init(integerLiteral value: Int64) { self.init(value) }
}
