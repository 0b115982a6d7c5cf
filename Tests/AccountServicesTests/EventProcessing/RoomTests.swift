import AccountServices
import TestSupport
import Testing

/// How much is held at once, and what is paused for it.
@Suite struct RoomTests {
  private nonisolated static let bounds = ProcessingBounds(
    inFlight: 16, inFlightPerPartition: 8, waiting: 32, waitingPerPartition: 16, concurrency: 1,
    retries: RetryPace(first: .seconds(1), longest: .seconds(1)), alarmAfter: 1, giveUpAfter: .seconds(1),
    clockTolerance: .seconds(121))

  @Test func aFullPartitionIsPausedUntilHalfOfItIsDone() {
    var room = Room(Self.bounds)
    let (first, second) = (room.add(), room.add())
    room.begin(8, of: first)
    #expect(room.isFull && room.left == 8)
    #expect(room.pauseFull() == [first] && room.isPaused(first) && !room.isPaused(second) && !room.isStuck(first))
    #expect(!room.isFull && !room.isCrowded, "what is read has room")
    #expect(room.pauseFull() == [], "it is paused already")
    for _ in 1...3 { #expect(room.finish(first) == []) }
    #expect(room.finish(first) == [first] && !room.isPaused(first))
  }

  @Test func aFullPartitionIsCrowdedUntilAQuarterOfItsShareIsFree() {
    var room = Room(Self.bounds)
    let first = room.add()
    room.begin(8, of: first)
    #expect(room.finish(first) == [] && !room.isFull && room.isCrowded)
    #expect(room.finish(first) == [] && !room.isCrowded)
  }

  @Test func whereThereIsNoRoomAllArePausedUntilHalfOfItIsFree() {
    var room = Room(Self.bounds)
    let ids = (1...4).map { _ in room.add() }
    for id in ids { room.begin(4, of: id) }
    #expect(room.left == 0 && room.isFull && room.isCrowded)
    #expect(room.pauseFull() == ids)
    for _ in 1...7 { #expect(room.finish(ids[0]) == [] || room.held < 9) }
    #expect(room.finish(ids[1]) == ids)
    #expect(room.left == 8)
  }

  @Test func whatBacksOffTakesNobodysRoomAndHasBoundsOfItsOwn() {
    var room = Room(Self.bounds)
    let (first, second) = (room.add(), room.add())
    room.begin(8, of: first)
    for _ in 1...8 { room.backOff(first) }
    #expect(room.left == 16 && room.pauseStuck() == [])
    room.begin(8, of: first)
    for _ in 1...8 { room.backOff(first) }
    #expect(room.pauseStuck() == [first] && room.isStuck(first) && !room.isPaused(second))
    room.goOn(first)
    #expect(room.finish(first) == [])
    room.goOn(first)
    #expect(room.finish(first) == [first])
  }

  @Test func whatGoesIsNotReadOnAndTakesWhatIsHeldWithIt() {
    var room = Room(Self.bounds)
    let (first, second) = (room.add(), room.add())
    room.begin(6, of: first)
    room.backOff(first)
    room.begin(11, of: second)
    #expect(room.pauseFull() == [first, second])
    for _ in 1...7 { #expect(room.finish(second) == []) }
    room.leave(first)
    #expect(room.remove(first) == [second])
    #expect(room.held == 4 && room.backingOff == 0)
    #expect(room.add() == first, "its place is free")
    #expect(room.close() == [first, second] && room.resume() == [] && room.finish(second) == [])
  }

  @Test func whateverHappensItCountsAsOneByOneAndPausesWhatIsFull() {
    for _ in SeededRandom.rounds(200) {
      var random = SeededRandom()
      var room = Room(Self.bounds)
      var model: [Room.ID: (held: Int, backingOff: Int, isPaused: Bool)] = [:]
      for step in 0..<200 {
        let comment: Comment = "SEED=\(random.seed), step \(step)"
        func pause(_ ids: [Room.ID]) {
          for id in ids {
            #expect(model[id]?.isPaused == false, comment)
            model[id]?.isPaused = true
          }
        }
        func resume(_ ids: [Room.ID]) {
          for id in ids {
            #expect(model[id]?.isPaused == true, comment)
            model[id]?.isPaused = false
          }
        }
        let id = model.keys.sorted().randomElement(using: &random)
        switch Int.random(in: 0..<8, using: &random) {
        case 0: if model.count < 4 { model[room.add()] = (0, 0, false) }
        case 1, 2, 3:
          guard let id, room.left > 0, model[id]?.isPaused == false else { continue }
          let count = min(room.left, Int.random(in: 1...6, using: &random))
          room.begin(count, of: id)
          model[id]?.held += count
          pause(room.pauseFull())
          for share in model.values {
            let isFull = share.held - share.backingOff >= 8 || share.backingOff >= 16
            #expect(!isFull || share.isPaused, comment)
          }
        case 4:
          guard let id, let share = model[id], share.held > share.backingOff else { continue }
          model[id]?.held -= 1
          resume(room.finish(id))
        case 5:
          guard let id, let share = model[id], share.held > share.backingOff else { continue }
          room.backOff(id)
          model[id]?.backingOff += 1
          pause(room.pauseStuck())
          resume(room.resume())
        case 6:
          guard let id, let share = model[id], share.backingOff > 0 else { continue }
          room.goOn(id)
          model[id]?.backingOff -= 1
        default:
          guard let id, Int.random(in: 0..<4, using: &random) == 0 else { continue }
          model[id] = nil
          resume(room.remove(id))
        }
        if room.isFull { pause(room.pauseFull()) }
        #expect(room.isFull == (room.left == 0), comment)
        #expect(room.held == model.values.reduce(0) { $0 + $1.held }, comment)
        #expect(room.backingOff == model.values.reduce(0) { $0 + $1.backingOff }, comment)
        #expect(room.paused == model.values.count { $0.isPaused }, comment)
        for (id, share) in model {
          #expect(room.isPaused(id) == share.isPaused && room.backingOff(id) == share.backingOff, comment)
        }
        if room.held == 0 { #expect(room.paused == 0 || room.resume().count == room.paused, comment) }
      }
    }
  }
}
