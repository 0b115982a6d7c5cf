import JSON
import Testing

/// Objects that are written straight into their bytes.
@Suite struct JSONWriterTests {
  private func text(_ body: (inout JSONWriter) -> Void) -> String {
    String(decoding: JSONWriter.object(body), as: UTF8.self)
  }

  @Test func writesMembersInTheirOrder() {
    let written = text {
      $0.add("text", "a \"b\" \\ \u{1}é")
      $0.add("number", -12)
      $0.add("yes", true)
      $0.add("no", false)
      $0.addPlain("plain") { $0.append(contentsOf: "2026-01-31".utf8) }
    }
    #expect(
      written == #"{"text":"a \"b\" \\ \u0001é","number":-12,"yes":true,"no":false,"plain":"2026-01-31"}"#)
  }

  @Test func leavesOutWhatIsNil() {
    let written = text {
      $0.add("text", nil as String?)
      $0.add("number", nil as Int64?)
      $0.add("flag", nil as Bool?)
      $0.add("last", 1)
      $0.add("text", nil as String?)
    }
    #expect(written == #"{"last":1}"#)
  }

  @Test func writesObjectsWithinObjects() {
    let written = text {
      $0.add("empty") { _ in }
      $0.add("outer") { outer in
        outer.add("inner") { $0.add("a", 1) }
        outer.add("b", 2)
      }
      $0.add("last", 3)
    }
    #expect(written == #"{"empty":{},"outer":{"inner":{"a":1},"b":2},"last":3}"#)
  }

  @Test(arguments: [(0, "[]"), (1, #"[{"place":0}]"#), (3, #"[{"place":0},{"place":1},{"place":2}]"#)])
  func writesArraysOfObjects(count: Int, expected: String) {
    let written = text {
      $0.add("list", count: count) { place, item in item.add("place", Int64(place)) }
      $0.add("last", 1)
    }
    #expect(written == #"{"list":\#(expected),"last":1}"#)
  }

  @Test func writesNothingAsAnEmptyObject() { #expect(text { _ in } == "{}") }
}
