import Glibc

/// Another program that is asked something: input on its standard input, the answer on its standard output.
package struct ExternalProgram: Sendable {
  /// The program, at a path or on `PATH`, and its arguments.
  package let command: [String]
  /// Its environment.
  package let environment: [String: String]

  /// Why there is no answer.
  package enum Failure: Error, Sendable, Equatable, CustomStringConvertible {
    /// It could not be started, or not be spoken with.
    case system(SystemError)
    /// It took too long, and was killed.
    case deadline
    /// It answered more than the limit, and was killed.
    case tooLong
    /// It ended with another code than 0; the words are the end of its standard error, printable.
    case exit(code: Int32, words: String)
    /// A signal ended it.
    case signal(Int32)

    /// What happened, in words.
    package var description: String {
      switch self {
      case .system(let error): "it cannot be started: \(error)"
      case .deadline: "it took too long"
      case .tooLong: "it answered too much"
      case .exit(let code, let words): "it ended with \(code)" + (words.isEmpty ? "" : ": \(words)")
      case .signal(let number): "it was ended by signal \(number)"
      }
    }
  }

  /// How much of the end of its standard error is kept.
  private static let wordsKept = 200

  /// A program that is started anew for each question.
  package init(_ command: [String], environment: [String: String]) {
    precondition(!command.isEmpty, "no program")
    (self.command, self.environment) = (command, environment)
  }

  /// Starts the program, hands `input` to it, and returns what it answered once it has ended with 0. Blocks the thread for
  /// `limit` at most; then the program, and all that it has started in turn, is killed.
  package func answer(
    to input: [UInt8], upTo size: Int, within limit: Duration
  ) throws(Failure) -> [UInt8] {
    let end = MonotonicTime.now + limit
    let conversation = try Conversation(self)
    do throws(Failure) {
      let (answer, words) = try conversation.hold(input, upTo: size, wordsKept: Self.wordsKept, until: end)
      switch try conversation.ending(before: end) {
      case 0: return answer
      case let status where status & 0x7f == 0:
        throw .exit(code: status >> 8 & 0xff, words: Self.printable(words))
      case let status: throw .signal(status & 0x7f)
      }
    } catch {
      conversation.kill()
      throw error
    }
  }

  private static func printable(_ bytes: [UInt8]) -> String {
    let text = bytes.map { 0x20..<0x7f ~= $0 ? $0 : UInt8(ascii: " ") }
    return String(decoding: text, as: UTF8.self).split(separator: " ").joined(separator: " ")
  }
}

/// A program that was started, with our ends of its pipes.
private final class Conversation {
  private let identifier: pid_t
  private var input, output, errors: CInt
  private var isOver = false

  init(_ program: ExternalProgram) throws(ExternalProgram.Failure) {
    var pipes: [ChildProcess.Pipe] = []
    do throws(SystemError) {
      for _ in 0..<3 { pipes.append(try ChildProcess.Pipe()) }
      identifier = try ChildProcess.spawn(
        program.command, program.environment, (pipes[0].reading, pipes[1].writing, pipes[2].writing),
        inGroupOfItsOwn: true)
    } catch {
      for pipe in pipes { [pipe.reading, pipe.writing].forEach { close($0) } }
      throw .system(error)
    }
    (input, output, errors) = (pipes[0].writing, pipes[1].reading, pipes[2].reading)
    [pipes[0].reading, pipes[1].writing, pipes[2].writing].forEach { close($0) }
    for number in [input, output, errors] { _ = fcntl(number, F_SETFL, O_NONBLOCK) }
  }

  deinit { for number in [input, output, errors] where number >= 0 { close(number) } }

  /// Writes the input and reads until both outputs have ended.
  func hold(
    _ text: [UInt8], upTo size: Int, wordsKept: Int, until end: MonotonicTime
  ) throws(ExternalProgram.Failure) -> (answer: [UInt8], words: [UInt8]) {
    var (rest, answer, words) = (text[...], [UInt8](), [UInt8]())
    while output >= 0 || errors >= 0 {
      // A negative number is passed over.
      var places = [
        pollfd(fd: input, events: Int16(POLLOUT), revents: 0), pollfd(fd: output, events: Int16(POLLIN), revents: 0),
        pollfd(fd: errors, events: Int16(POLLIN), revents: 0),
      ]
      let left = (end - .now).wholeNanoseconds
      guard left > 0 else { throw .deadline }
      let count = unsafe poll(&places, 3, CInt(clamping: left / 1_000_000 + 1))
      if count < 0, errno != EINTR { throw .system(.current) }
      if places[0].revents != 0 { write(&rest) }
      if places[1].revents != 0 { read(from: &output, into: &answer) }
      if places[2].revents != 0 {
        read(from: &errors, into: &words)
        words = words.suffix(wordsKept)
      }
      if answer.count > size { throw .tooLong }
    }
    return (answer, words)
  }

  /// Waits for the program's end, and returns its status.
  func ending(before end: MonotonicTime) throws(ExternalProgram.Failure) -> Int32 {
    var (status, pause): (CInt, UInt32) = (0, 100)
    while true {
      let result = unsafe waitpid(identifier, &status, WNOHANG)
      if result == identifier {
        isOver = true
        return status
      }
      if result < 0, errno != EINTR { throw .system(.current) }
      guard .now < end else { throw .deadline }
      // It has closed its outputs: it ends in this moment, unless it has closed them on purpose.
      usleep(pause)
      pause = min(pause * 2, 20_000)
    }
  }

  /// Ends the program and all that it has started.
  func kill() {
    if isOver { return }
    Glibc.kill(-identifier, SIGKILL)
    var status: CInt = 0
    while unsafe waitpid(identifier, &status, 0) < 0, errno == EINTR {}
    isOver = true
  }

  private func write(_ rest: inout ArraySlice<UInt8>) {
    let count = unsafe rest.withUnsafeBytes { unsafe Glibc.write(input, $0.baseAddress, $0.count) }
    if count > 0 { rest = rest.dropFirst(count) }
    // A program that reads no more may have read enough.
    if rest.isEmpty || count < 0 && errno != EAGAIN && errno != EINTR { end(&input) }
  }

  private func read(from descriptor: inout CInt, into bytes: inout [UInt8]) {
    var room = [UInt8](repeating: 0, count: 16_384)
    let count = unsafe Glibc.read(descriptor, &room, room.count)
    if count > 0 { bytes.append(contentsOf: room[..<count]) }
    if count == 0 || count < 0 && errno != EAGAIN && errno != EINTR { end(&descriptor) }
  }

  private func end(_ descriptor: inout CInt) {
    close(descriptor)
    descriptor = -1
  }
}
