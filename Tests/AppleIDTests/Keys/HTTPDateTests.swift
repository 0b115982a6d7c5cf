import AccountEvents
import TestSupport
import Testing

@testable import AppleID

@Suite struct HTTPDateTests {
  @Test(
    arguments: [
      ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777), ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
      ("Thu, 29 Feb 2024 23:59:59 GMT", 1_709_251_199), ("Fri, 01 Mar 2024 00:00:00 GMT", 1_709_251_200),
      ("Wed, 31 Dec 2025 23:59:60 GMT", 1_767_225_600), ("Mon, 28 Feb 2100 12:00:00 GMT", 4_107_499_200),
    ] as [(String, Int64)])
  func readsAMoment(text: String, seconds: Int64) {
    #expect(Timestamp(httpDate: text)?.milliseconds == seconds * 1000)
  }

  @Test(arguments: [
    "", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994", "Sun, 06 Nov 1994 08:49:37 UTC",
    "Sun, 6 Nov 1994 08:49:37 GMT", "Sun, 06 nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 24:49:37 GMT",
    "Sun, 06 Nov 1994 08:60:37 GMT", "Sun, 06 Nov 1994 08:49 GMT", "Sun, 00 Nov 1994 08:49:37 GMT",
    "Sun, 06 Nov 1994 -8:49:37 GMT", "Sun, 06 Nov 1969 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 GMT ",
    "Sun,  06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov ١٩٩٤ 08:49:37 GMT",
  ])
  func readsNothingElse(text: String) { #expect(Timestamp(httpDate: text) == nil) }
}
