import TestSupport
import Testing

@testable import TransparencyLog

@Suite struct TilePathTests {
  @Test(arguments: [
    (TilePath(.hashes(level: 0), 0), "tile/0/000"),
    (TilePath(.hashes(level: 0), 1_234_067), "tile/0/x001/x234/067"),
    (TilePath(.hashes(level: 2), 999, width: 255), "tile/2/999.p/255"),
    (TilePath(.hashes(level: 63), 1000, width: 1), "tile/63/x001/000.p/1"),
    (TilePath(.entries, 0, width: 7), "tile/entries/000.p/7"),
    (TilePath(.entries, .max), "tile/entries/x018/x446/x744/x073/x709/x551/615"),
  ])
  func pathsAreThoseOfTheSpecification(path: TilePath, text: String) {
    #expect(path.text == text)
    #expect(TilePath(text) == path)
  }

  @Test(arguments: [
    "", "tile", "tile/", "tile/0", "tile/0/", "tile/0/0", "tile/0/0000", "tile/0/x000/000", "tile/0/001/000",
    "tile/0/x01/000",
    "tile/0/x001", "tile/0/x001/x000", "tile/64/000", "tile/00/000", "tile/-1/000", "tile/+1/000", "tile/data/000",
    "tile/0/000.p", "tile/0/000.p/", "tile/0/000.p/0", "tile/0/000.p/256", "tile/0/000.p/07", "tile/0/000.p/+7",
    "tile/0/000.p/7/", "tile/0/000.p/7/8", "tile/0/.p/7", "/tile/0/000", "tile//0/000", "tile/0/../000",
    "tile/0/000/..",
    "tile/0/00٣", "tile/entries/x018/x446/x744/x073/x709/x551/616", "tile/0/x999/x999/x999/x999/x999/x999/x999/999",
    "tile/0/000\n", "tile/0/000.p.p/7",
  ])
  func noOtherPathIsRead(text: String) {
    #expect(TilePath(text) == nil)
  }

  /// The examples of tlog-tiles.
  @Test func treesHaveTheTilesOfTheSpecification() {
    func edges(_ size: UInt64) -> [String] { TilePath.kinds.compactMap { TilePath.edge($0, of: size)?.text } }
    #expect(
      edges(70_000) == ["tile/entries/273.p/112", "tile/0/273.p/112", "tile/1/001.p/17", "tile/2/000.p/1"])
    #expect(edges(256) == ["tile/1/000.p/1"])
    #expect(edges(0) == [])
    #expect(edges(.max).count == 9)
    #expect(TilePath(.hashes(level: 0), holding: 69_999, in: 70_000).text == "tile/0/273.p/112")
    #expect(TilePath(.hashes(level: 1), holding: 3, in: 70_000).text == "tile/1/000")
    #expect(TilePath(.entries, holding: 69_887, in: 70_000).text == "tile/entries/272")
  }
}

@Suite struct EntryBundleTests {
  @Test func entriesStandBehindTheirLengths() {
    var bytes: [UInt8] = []
    let entries: [[UInt8]] = [[], [1], Array(repeating: 2, count: 258), Array(repeating: 3, count: 65_535)]
    for entry in entries { EntryBundle.append(entry, to: &bytes) }
    #expect(bytes.prefix(7) == [0, 0, 0, 1, 1, 1, 2])
    let bundle = EntryBundle(bytes)
    #expect(bundle.isWellFormed && bundle.entries.map { Array(bytes[$0]) } == entries)
    #expect(bundle.hashes == entries.map { .leaf($0) })
  }

  @Test(arguments: [
    ([], 0, true), ([0], 0, false), ([0, 1], 0, false), ([0, 0, 0], 1, false), ([0, 2, 1], 0, false),
    ([0xff, 0xff], 0, false), ([0, 1, 9, 0xff, 0xff, 1], 1, false),
    ([UInt8](repeating: 0, count: 512), 256, true), ([UInt8](repeating: 0, count: 514), 256, false),
    ([UInt8](repeating: 0, count: 1_000_000), 256, false),
  ])
  func hostileBundlesAreTakenApartAsFarAsTheyGo(bytes: [UInt8], count: Int, isWellFormed: Bool) {
    let bundle = EntryBundle(bytes)
    #expect(bundle.entries.count == count && bundle.isWellFormed == isWellFormed)
  }
}
