import AccountEvents
import Kafka

/// What a consumer puts beside an offset that it commits: where its records were, and the account store that has what came
/// of them.
///
/// A group that goes on with another account store passes over events of which that store knows nothing, and nobody sees it:
/// so a consumer goes on only with the store that the note names. What other programs set has no note.
struct CommitNote: Equatable {
  private static let mark = "store="

  /// What `PartitionContinuity` says of the records; empty where nothing is known.
  let continuity: String
  /// The store's identity; nil where the note names none, as one of an earlier version.
  let store: String?

  /// A note of this process's.
  init(_ continuity: PartitionContinuity, store: HashKeyID) {
    (self.continuity, self.store) = (continuity.note, store.description)
  }

  /// A note that stands beside a committed offset.
  init(_ text: String) {
    let words = text.split(separator: " ")
    store = words.last.flatMap { $0.hasPrefix(Self.mark) ? String($0.dropFirst(Self.mark.count)) : nil }
    continuity = store == nil ? text : words.dropLast().joined(separator: " ")
  }

  /// As it is committed.
  var text: String {
    ([continuity] + (store.map { [Self.mark + $0] } ?? [])).filter { !$0.isEmpty }.joined(separator: " ")
  }

  /// Whether the group has worked with another store than this one.
  func isForeign(to store: HashKeyID) -> Bool { self.store.map { $0 != store.description } ?? false }
}

extension PartitionContinuity {
  /// A partition of which the group has committed this, with a note of a consumer's beside it.
  init(ofConsumer committed: CommittedOffset?) {
    self.init(committed.map { CommittedOffset($0.offset, note: CommitNote($0.note).continuity) })
  }
}
