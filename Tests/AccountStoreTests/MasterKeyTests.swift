import Cryptography
import EventLoop
import TestSupport
import Testing

@testable import AccountStore

@Suite struct MasterKeyTests {
  private let files = TemporaryDirectory()

  @Test func aNewKeyCanBeReadAndIsNeverShown() throws {
    let text = try MasterKey.newText()
    let key = try MasterKey(file: files.write("key", text))
    #expect(try MasterKey(file: files.write("without-newline", String(text.dropLast()))).id == key.id)
    #expect(try MasterKey(file: files.write("other", try MasterKey.newText())).id != key.id)
    #expect(key.id.utf8.count == 16)
    let bytes = try #require(Base64URL.decode(String(text.dropLast())))
    let keys = try StoreKeys(StoreKeys.Wrapped(keys: [StoreKeys.make(for: key)]), with: key)
    for shown in [key, keys, try #require(HashKey(bytes))] as [Any] {
      var dumped = ""
      dump(shown, to: &dumped)
      for description in ["\(shown)", String(reflecting: shown), dumped] {
        #expect(
          !description.contains(text.dropLast()) && !description.contains("\(bytes[0]), \(bytes[1]), \(bytes[2])"))
        #expect(!description.contains("["), "bytes are shown")
      }
    }
  }

  @Test(arguments: [0o644, 0o640, 0o604, 0o660, 0o602, 0o610])
  func aKeyThatOthersCanGetAtIsRefused(mode: UInt32) throws {
    let path = files.write("key", try MasterKey.newText(), mode: mode)
    let error = #expect(throws: KeyFileError.self) { try MasterKey(file: path) }
    #expect(error?.description.contains("must be this user's own, with mode 0600") == true)
  }

  @Test(arguments: [
    "", "\n", "abc\n", String(repeating: "A", count: 42), String(repeating: "A", count: 44),
    String(repeating: "A", count: 42) + "B", String(repeating: "A", count: 43) + "\n\n",
    String(repeating: "A", count: 43) + "=", " " + String(repeating: "A", count: 43),
    String(repeating: "A", count: 2000),
  ])
  func whatIsNoKeyIsRefusedAndNotShown(text: String) throws {
    let path = files.write("key", text)
    let error = #expect(throws: KeyFileError.self) { try MasterKey(file: path) }
    #expect(error?.description.contains(path) == true && error?.description.contains("AAAA") == false)
  }

  @Test func aMissingKeyIsNamed() {
    let error = #expect(throws: KeyFileError.self) { try MasterKey(file: files.path + "/none") }
    #expect(error?.description.hasPrefix("\(files.path)/none cannot be read: ") == true)
  }
}
