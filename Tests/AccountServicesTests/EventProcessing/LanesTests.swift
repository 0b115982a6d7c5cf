import AccountServices
import TestSupport
import Testing

/// The order of each account's records.
@Suite struct LanesTests {
  private func key(_ number: Int) -> RecordKey { RecordKey(bytes: [UInt8(number)]) }

  @Test func oneAfterTheOtherIsBegunWith() {
    var lanes = Lanes<String>()
    let (ada, isFirst, _) = lanes.append("ada 1", key: key(1))
    #expect(isFirst)
    #expect(lanes.append("ada 2", key: key(1)) == (ada, false, false))
    #expect(lanes.append("bob 1", key: key(2)).isFirst)
    #expect(lanes.leave(ada) == "ada 2")
    #expect(lanes.leave(ada) == nil)
    #expect(lanes.append("ada 3", key: key(1)).isFirst, "nothing of the account is under way")
  }

  @Test func whatComesBehindOneThatBacksOffBacksOffWithIt() {
    var lanes = Lanes<String>()
    let lane = lanes.append("1", key: key(1)).lane
    _ = lanes.append("2", key: key(1))
    #expect(lanes.backOff(lane) == ["1", "2"])
    #expect(lanes.append("3", key: key(1)).isBackingOff)
    #expect(lanes.goOn(lane) == ["1", "2", "3"])
    #expect(lanes.goOn(lane) == [])
  }

  @Test func anAccountsMemoryOfWhatWasGivenUpEndsWithASuccessAndWithTheLane() {
    var lanes = Lanes<String>()
    let lane = lanes.append("1", key: key(1)).lane
    _ = lanes.append("2", key: key(1))
    lanes.gaveUp(lane)
    #expect(lanes.leave(lane) == "2" && lanes.hasGivenUp(lane))
    lanes.recovered(lane)
    #expect(!lanes.hasGivenUp(lane))
    lanes.gaveUp(lane)
    _ = lanes.leave(lane)
    let next = lanes.append("3", key: key(2)).lane
    #expect(next == lane && !lanes.hasGivenUp(next), "the place is another account's")
  }

  @Test func whateverComesTheyDoAsQueuesWouldThatAreKeptByKey() {
    for _ in SeededRandom.rounds(200) {
      var random = SeededRandom()
      var (lanes, model) = (Lanes<Int>(), [RecordKey: (records: [Int], isBackingOff: Bool)]())
      var places: [RecordKey: Lanes<Int>.ID] = [:]
      for number in 0..<200 {
        let key = key(Int.random(in: 0..<6, using: &random))
        let comment: Comment = "SEED=\(random.seed), step \(number)"
        switch Int.random(in: 0..<9, using: &random) {
        case 0..<4:
          let (lane, isFirst, isBackingOff) = lanes.append(number, key: key)
          #expect(isFirst == (model[key] == nil) && isBackingOff == (model[key]?.isBackingOff ?? false), comment)
          model[key, default: ([], false)].records.append(number)
          places[key] = lane
        case 4, 5:
          guard let lane = places[key], model[key] != nil else { continue }
          model[key]?.records.removeFirst()
          let next = model[key]?.records.first
          if next == nil { model[key] = nil }
          #expect(lanes.leave(lane) == next, comment)
        case 6:
          guard let lane = places[key], model[key] != nil else { continue }
          model[key]?.isBackingOff = true
          #expect(lanes.backOff(lane) == model[key]?.records, comment)
        case 7:
          guard let lane = places[key], let known = model[key] else { continue }
          #expect(lanes.goOn(lane) == (known.isBackingOff ? known.records : []), comment)
          model[key]?.isBackingOff = false
        default:
          let remainder = Int.random(in: 0..<3, using: &random)
          let isToGo = { (record: Int) in record % 3 == remainder }
          let result = lanes.removeAll(where: isToGo)
          #expect(Set(result.removed) == Set(model.values.flatMap(\.records).filter(isToGo)), comment)
          var (first, goOn): (Set<Int>, Set<Int>) = ([], [])
          for (key, lane) in model {
            let left = lane.records.filter { !isToGo($0) }
            model[key] = left.isEmpty ? nil : (left, lane.isBackingOff)
            guard let head = lane.records.first, isToGo(head), let next = left.first else { continue }
            first.insert(next)
            if lane.isBackingOff { goOn.formUnion(left) }
            model[key]?.isBackingOff = false
          }
          #expect(Set(result.first) == first && Set(result.goOn) == goOn, comment)
        }
        #expect(Set(lanes.first) == Set(model.values.compactMap(\.records.first)), comment)
      }
    }
  }
}
