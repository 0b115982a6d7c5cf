import AccountEvents
import Foundation
import TestSupport
import Testing

@Suite struct EventRecordTests {
  /// What the contract is held to: bytes that were published once are what readers have learned to read.
  @Test(arguments: Examples.golden.map(\.name))
  func writesTheGoldenBytes(_ name: String) throws {
    let record = try #require(Examples.golden.first { $0.name == name }).record
    let golden = try Repository.bytes("Tests/AccountEventsTests/Golden/\(name).record")
    #expect(record.readable == String(decoding: golden, as: UTF8.self))
  }

  @Test func escapesAnAddressOnce() throws {
    let address = try #require(RelayAddress(#""a\b"@例え.jp"#))
    let record = EventRecord(Examples.event(.emailEnabled(address, isPrivate: false)), jws: nil)
    let value = String(decoding: record.value, as: UTF8.self)
    #expect(value.hasSuffix(#","email":"\"a\\b\"@例え.jp","is_private_email":false}"#))
  }

  /// What the codes of requests that are on their way are made of.
  @Test func aRequestHasTheSameBytesInEveryVersion() {
    let length: [UInt8] = [0, 0, 0, 0, 0, 0, 0]
    #expect(
      DeletionRequest(Array("{}".utf8), by: Array("bob".utf8), because: []).bytes
        == Array("deletion-request:".utf8) + length + [2] + Array("{}".utf8) + length + [3] + Array("bob".utf8)
        + length + [0])
  }

  @Test(Python.isThere)
  func anotherImplementationReadsItsRecords() async throws {
    let address = try #require(RelayAddress(#""a\b"@例え.jp"#))
    let longest = try #require(AppleSubject(String(repeating: "~", count: 255)))
    let records =
      Examples.golden.map(\.record) + [
        EventRecord(Examples.event(.emailEnabled(address, isPrivate: true)), jws: Examples.jws),
        EventRecord(Examples.quarantined(.expired, subject: longest, json: "{}"), jws: Examples.jws),
        EventRecord(Examples.quarantined(.notYetValid, subject: longest, json: "{}"), jws: Examples.jws),
      ] + Examples.withoutEffect.map { EventRecord($0) }
    let input = try JSONEncoder().encode(records.map(WireRecord.init))
    let outcome = try await Python.run("Tests/AccountEventsTests/Python/check_records.py", input: [UInt8](input))
    try #require(outcome.end == .exit(0), "\(outcome.errors)")
    let read = try #require(try JSONSerialization.jsonObject(with: Data(outcome.output)) as? [[String: Any]])
    try #require(read.count == records.count)

    for (record, event) in zip(records, read) {
      let attributes = try #require(event["attributes"] as? [String: String])
      var expected: [String: String] = ["datacontenttype": "application/json"]
      for header in record.headers where header.name.hasPrefix("ce_") {
        expected[String(header.name.dropFirst(3))] = String(decoding: header.value, as: UTF8.self)
      }
      expected["time"] = String(
        (record.topic == .accountEvents ? Examples.occurredAt : Examples.issuedAt).milliseconds)
      #expect(attributes == expected)
      let data = try #require(event["data"] as? NSDictionary)
      #expect(data == (try JSONSerialization.jsonObject(with: Data(record.value)) as? NSDictionary))
    }
    let last = try #require(read[Examples.golden.count]["data"] as? [String: Any])
    #expect(last["email"] as? String == #""a\b"@例え.jp"#)
  }

  @Test(Python.isThere, .enabled(if: asyncAPISchema != nil, "needs AsyncAPI's JSON Schema: ../shared/specs"))
  func describesItsTopicsAsAsyncAPIWantsIt() async throws {
    let schema = try #require(asyncAPISchema)
    #expect(try await Python.run("Tests/AccountEventsTests/Python/check_asyncapi.py", [schema]).end == .exit(0))
  }
}

/// The JSON Schema of AsyncAPI documents: `SPECS` names the folder, `../shared/specs` where it is unset.
private let asyncAPISchema: String? = {
  let folder = ProcessInfo.processInfo.environment["SPECS"] ?? Repository.root + "/../shared/specs"
  let path = folder + "/asyncapi-3.1.0.json"
  return FileManager.default.fileExists(atPath: path) ? path : nil
}()

extension EventRecord {
  /// The form of the golden files: topic, key and headers a line each, then the value.
  fileprivate var readable: String {
    var text = "topic: \(topic)\n"
    if let key { text += "key: \(String(decoding: key, as: UTF8.self))\n" }
    for header in headers { text += "\(header.name): \(String(decoding: header.value, as: UTF8.self))\n" }
    return text + "\n\(String(decoding: value, as: UTF8.self))\n"
  }
}

/// A record as `check_records.py` takes it.
private struct WireRecord: Encodable {
  let topic: String
  let key: String?
  let value: String
  let headers: [[String]]

  init(_ record: EventRecord) {
    topic = record.topic.name
    key = record.key.map(hexadecimal)
    value = hexadecimal(record.value)
    headers = record.headers.map { [$0.name, hexadecimal($0.value)] }
  }

  func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(topic, forKey: .topic)
    try container.encode(key, forKey: .key)  // null where there is none
    try container.encode(value, forKey: .value)
    try container.encode(headers, forKey: .headers)
  }

  private enum CodingKeys: CodingKey { case topic, key, value, headers }
}

private func hexadecimal(_ bytes: [UInt8]) -> String { bytes.map { String(format: "%02x", $0) }.joined() }
