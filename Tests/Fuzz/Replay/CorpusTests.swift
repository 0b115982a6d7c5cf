import Foundation
import TestSupport
import Testing

/// Every input that was worth keeping, checked again: what `make fuzz` starts from, and what it once found.
@Suite struct CorpusTests {
  @Test(arguments: Subject.allCases)
  func everyPromiseHoldsForTheWholeCorpus(subject: Subject) throws {
    let folder = "Tests/Fuzz/Corpus/\(subject.rawValue)"
    let names = try FileManager.default.contentsOfDirectory(atPath: "\(Repository.root)/\(folder)")
    #expect(names.count >= 5)
    for name in names {
      let bytes = try Repository.bytes("\(folder)/\(name)")
      #expect(throws: Never.self, "\(folder)/\(name)") { try subject.check(bytes) }
    }
  }

  /// Neighbours of the corpus, a few in `make test`: a promise that is broken far away is `make fuzz`'s to find.
  @Test(arguments: Subject.allCases)
  func everyPromiseHoldsNearTheCorpus(subject: Subject) throws {
    var random = SeededRandom()
    let folder = "Tests/Fuzz/Corpus/\(subject.rawValue)"
    let names = try FileManager.default.contentsOfDirectory(atPath: "\(Repository.root)/\(folder)").sorted()
    for round in SeededRandom.rounds(200) {
      let bytes = try Repository.bytes("\(folder)/\(names[round % names.count])")
      let mutation = random.mutation(of: bytes, characters: "{}[]\":,\\/u0123456789.-eE \r\n\t")
      #expect(throws: Never.self, "seed \(random.seed), round \(round)") { try subject.check(mutation) }
    }
  }
}
