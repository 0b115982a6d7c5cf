import EventLoop
import Glibc
import TestSupport
import Testing

@testable import Telemetry

@Suite struct LoggerTests {
  private let log = CapturedLog()

  @Test func writesOneJSONObjectALine() {
    log.logger().info("event published", ["event.id": "abc", "kafka.partition": 3, "kafka.isNew": true, "took": 0.5])
    #expect(
      log.lines == [
        #"{"time":"2026-01-01T00:00:00.000Z","level":"info","message":"event published","event.id":"abc","#
          + #""kafka.partition":3,"kafka.isNew":true,"took":0.5}"# + "\n"
      ])
  }

  @Test func writesTextForPeople() {
    let logger = log.logger(format: .text)
    logger.warning("broker slow", ["kafka.broker": "b-1:9092", "cause": "timed out"])
    logger.info("ready", ["empty": "", "assignment": "a=b"])
    #expect(
      log.lines == [
        "2026-01-01T00:00:00.000Z WARNING broker slow kafka.broker=b-1:9092 cause=\"timed out\"\n",
        "2026-01-01T00:00:00.000Z INFO    ready empty=\"\" assignment=\"a=b\"\n",
      ])
  }

  @Test(arguments: LogLevel.allCases) func leavesOutLinesBelowItsLevel(level: LogLevel) {
    let logger = log.logger(level: level)
    logger.debug("debug")
    logger.info("info")
    logger.notice("notice")
    logger.warning("warning")
    logger.error("error")
    #expect(log.lines.count == LogLevel.allCases.filter { $0 >= level }.count)
    #expect(log.lines.first?.contains("\"level\":\"\(level.rawValue)\"") == true)
  }

  /// Whoever collects the lines may stop reading. The pipe blocks, as a standard error does; the writer is not held up.
  @Test func aLineThatNobodyTakesIsLostAndHoldsNobodyUp() {
    var ends: [CInt] = [-1, -1]
    unsafe pipe(&ends)
    defer { for end in ends { close(end) } }
    let line = [UInt8](repeating: 65, count: Logger.maximumLineSize)
    var written = 0
    while LogSink.writeAtOnce(line, to: ends[1]) { written += 1 }
    #expect(written > 0)
    #expect(!LogSink.writeAtOnce(line, to: ends[1]))
    var room = [UInt8](repeating: 0, count: line.count)
    #expect(unsafe read(ends[0], &room, room.count) == line.count)
    #expect(LogSink.writeAtOnce(line, to: ends[1]))
    #expect(!LogSink.writeAtOnce(line, to: -1))
  }

  /// Threads ask for room and write, many times over, into a pipe that nobody reads until all have given up.
  @Test(.timeLimit(.minutes(30)))
  func noThreadIsHeldUpByWhatAnotherOneWrites() async throws {
    var ends: [CInt] = [-1, -1]
    unsafe pipe(&ends)
    let (reading, writing) = (ends[0], ends[1])
    defer { for end in [reading, writing] { close(end) } }
    let line = [UInt8](repeating: 65, count: 3000)
    let threads = (0..<4).map { _ in BlockingThread(named: "logs") }
    var contents = [UInt8](repeating: 0, count: 1 << 20)
    for _ in 1...300 {
      await withTaskGroup { group in
        for thread in threads {
          group.addTask { await thread.run { while LogSink.writeAtOnce(line, to: writing) {} } }
        }
      }
      #expect(unsafe read(reading, &contents, contents.count) > 0)
    }
  }

  @Test func evaluatesNoMetadataForALineThatIsNotWritten() {
    func metadata() -> LogMetadata {
      Issue.record("evaluated")
      return [:]
    }
    log.logger(level: .info).debug("quiet", metadata())
    #expect(log.lines.isEmpty)
  }

  @Test func carriesItsMetadataDownTheWay() {
    let logger = log.logger(format: .text).with(["team": "A1", "http.peer": "127.0.0.1"]).with(["http.peer": "::1"])
    logger.error("refused", ["reason": "size", "team": "B2"])
    #expect(log.lines == ["2026-01-01T00:00:00.000Z ERROR   refused team=B2 http.peer=::1 reason=size\n"])
  }

  @Test(arguments: [
    Escape("a\nb", #"a\nb"#), Escape("\r\n\t", #"\r\n\t"#), Escape("\u{1b}[31m", #"\u001b[31m"#),
    Escape("\u{0}\u{7f}", #"\u0000\u007f"#), Escape("\u{85}\u{9b}", #"\u0085\u009b"#),
    Escape("\u{202e}\u{2066}\u{2028}", #"\u202e\u2066\u2028"#), Escape(#"say "hi" \o/"#, #"say \"hi\" \\o/"#),
    Escape("Grüße 🦊", "Grüße 🦊"),
  ]) fileprivate func escapesWhatCouldForgeALineOrCommandATerminal(case escape: Escape) {
    log.logger().info("m", ["k": .string(escape.text)])
    log.logger(format: .text).info("m", ["k": .string(escape.text)])
    #expect(log.lines[0].hasSuffix(#","k":""# + escape.expected + "\"}\n"))
    #expect(log.lines[1].contains(escape.expected))
    #expect(log.lines.allSatisfy { $0.filter(\.isNewline).count == 1 })
  }

  @Test func cutsLongValuesBetweenCharacters() {
    log.logger().info("m", ["k": .string(String(repeating: "ü", count: 5000))])
    #expect(log.lines[0].hasSuffix(#""k":""# + String(repeating: "ü", count: 256) + "…\"}\n"))
  }

  @Test(arguments: LogFormat.allCases) func neverWritesMoreThanAPipeTakesInOnePiece(format: LogFormat) {
    let long = LogValue.string(String(repeating: "\u{1}", count: 5000))
    log.logger(format: format).info(
      "m", ["a": long, "b": long, "c": long, "d": long, "e": long, "f": long, "g": long, "h": long, "i": "short"])
    #expect(log.lines[0].utf8.count <= Logger.maximumLineSize)
    #expect(log.lines[0].contains("log.truncated") && !log.lines[0].contains("short"))
    #expect(log.lines[0].hasSuffix("\n"))
  }

  @Test func writesNumbersThatJSONHasNoWordForAsText() {
    log.logger().info("m", ["a": .number(.nan), "b": .number(-.infinity), "c": .integer(UInt64.max)])
    #expect(log.lines[0].hasSuffix(#","a":"nan","b":"-inf","c":9223372036854775807}"# + "\n"))
  }

  @Test func writesDurationsAsSeconds() {
    log.logger().info("m", ["took": .seconds(.milliseconds(1250))])
    #expect(log.lines[0].hasSuffix(",\"took\":1.25}\n"))
  }

  @Test(
    arguments: [
      (0, "1970-01-01T00:00:00.000Z"), (-1, "1969-12-31T23:59:59.999Z"), (951_782_400_000, "2000-02-29T00:00:00.000Z"),
      (1_709_251_199_007, "2024-02-29T23:59:59.007Z"), (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
      (.max, "9999-12-31T23:59:59.999Z"), (.min, "0000-01-01T00:00:00.000Z"),
    ] as [(Int64, String)]) func writesTimesAsRFC3339(milliseconds: Int64, expected: String)
  {
    let logger = Logger(
      level: .info, format: .text,
      sink: LogSink { line in #expect(String(decoding: line, as: UTF8.self) == "\(expected) INFO    m\n") },
      clock: { milliseconds })
    logger.info("m")
  }

  @Test func writesToStandardErrorUnlessToldOtherwise() async throws {
    let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
      Logger(level: .info, format: .text, clock: { 0 }).info("hello", ["a": 1])
    }
    let written = String(decoding: try #require(result).standardErrorContent, as: UTF8.self)
    #expect(written.contains("1970-01-01T00:00:00.000Z INFO    hello a=1\n"))
  }

  @Test func keepsOnlyTheLengthOfWhatIsRedacted() {
    log.logger(format: .text).info("m", ["k": .describing(Redacted("someone@example.com"))])
    #expect(log.lines[0].hasSuffix("k=\"«redacted, 19 bytes»\"\n"))
  }
}

/// A text and its written form, which names the case: a test's output goes to terminals too.
private struct Escape: CustomTestStringConvertible {
  let text: String
  let expected: String

  init(_ text: String, _ expected: String) { (self.text, self.expected) = (text, expected) }

  var testDescription: String { expected }
}
