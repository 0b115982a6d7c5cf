import AccountEvents
import Kafka
import Testing

@testable import AccountServices

/// What a consumer puts beside an offset that it commits.
@Suite struct CommitNoteTests {
  private let store = HashKeyID(1)
  private let other = HashKeyID(2)

  @Test func aNoteSaysWhereTheRecordsWereAndWhichStoreHasWhatCameOfThem() {
    var place = PartitionContinuity()
    #expect(CommitNote(place, store: store).text == "store=\(store)")
    _ = place.read(6, time: 60)
    let note = CommitNote(CommitNote(place, store: store).text)
    #expect(note == CommitNote(place, store: store))
    #expect(
      PartitionContinuity(ofConsumer: .init(7, note: note.text)) == PartitionContinuity(.init(7, note: place.note)))
    #expect(!note.isForeign(to: store) && note.isForeign(to: other))
  }

  @Test(arguments: ["", "3 30 30", "somebody else's", "store", "=store", "store=1 2"])
  func aNoteWithoutAStoreBelongsToNoOther(text: String) {
    let note = CommitNote(text)
    #expect(note.store == nil && note.continuity == text)
    #expect(!note.isForeign(to: store))
  }

  @Test func aNoteWithAnEmptyNameIsOfAnotherStore() {
    #expect(CommitNote("store=").isForeign(to: store))
  }
}
