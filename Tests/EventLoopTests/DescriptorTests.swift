import Glibc
import TestSupport
import Testing

@testable import EventLoop

@Suite(.timeLimit(.minutes(30))) struct DescriptorTests {
  @Loop
  @Test func wakesAReaderWhenThereIsSomethingToRead() async throws {
    let (ours, theirs) = try socketPair()
    let descriptor = try Descriptor(owning: ours)
    #expect(read(descriptor) == .wouldBlock)
    let reading = Task { @Loop in
      #expect(await descriptor.untilReadable() == .ready)
      return read(descriptor)
    }
    await turn()
    send(theirs, "hello")
    #expect(await reading.value == .bytes("hello"))
    descriptor.close()
    close(theirs)
  }

  @Loop
  @Test func wakesAWriterWhenThereIsRoom() async throws {
    let (ours, theirs) = try socketPair()
    let descriptor = try Descriptor(owning: ours)
    let piece = [UInt8](repeating: 1, count: 65_536)
    var sent = 0
    while case let count = unsafe write(ours, piece, piece.count), count > 0 { sent += count }
    #expect(errno == EAGAIN)
    descriptor.clearWritable()
    let writing = Task { @Loop in await descriptor.untilWritable() }
    await turn()
    var received = 0
    var room = [UInt8](repeating: 0, count: 65_536)
    while case let count = unsafe Glibc.read(theirs, &room, room.count), count > 0 { received += count }
    #expect(received == sent)
    #expect(await writing.value == .ready)
    descriptor.close()
    close(theirs)
  }

  @Loop
  @Test(arguments: Channel.allCases)
  func tellsOnceThatThePeerHasEnded(_ channel: Channel) async throws {
    let (ours, theirs) = try channel.open()
    let descriptor = try Descriptor(owning: ours)
    var (told, late, never) = (0, 0, 0)
    descriptor.onEnd { never += 1 }
    descriptor.onEnd(nil)
    let end = Signal()
    descriptor.onEnd {
      told += 1
      end.fire()
    }
    send(theirs, "last words")
    await turn()
    #expect(told == 0)
    // A program that another test is starting may hold the peer's side for a moment longer.
    close(theirs)
    await end.wait()
    await turn()
    #expect(told == 1)
    // Who asks later is told at once.
    descriptor.onEnd { late += 1 }
    #expect(told == 1 && late == 1 && never == 0)
    descriptor.close()
  }

  /// The peer's last bytes and its end come in one event, which the kernel reports once. Whoever takes the bytes, and
  /// knows from their count that there are no more, must still learn of the end.
  @Loop
  @Test(arguments: Channel.allCases)
  func tellsOfTheEndThatCameTogetherWithTheLastBytes(_ channel: Channel) async throws {
    let (ours, theirs) = try channel.open()
    let descriptor = try Descriptor(owning: ours)
    #expect(read(descriptor) == .wouldBlock)
    await turn()
    send(theirs, "last words")
    close(theirs)
    #expect(await descriptor.untilReadable() == .ready)
    #expect(read(descriptor) == .bytes("last words"))
    descriptor.clearReadable()
    #expect(await descriptor.untilReadable() == .ready)
    #expect(read(descriptor) == .end)
    descriptor.close()
  }

  @Loop
  @Test func tellsOfTheEndThatComesLater() async throws {
    let (ours, theirs) = try socketPair()
    let descriptor = try Descriptor(owning: ours)
    send(theirs, "words")
    await turn()
    #expect(read(descriptor) == .bytes("words"))
    descriptor.clearReadable()
    let reading = Task { @Loop in await descriptor.untilReadable() }
    await turn()
    shutdown(theirs, CInt(SHUT_WR))
    #expect(await reading.value == .ready)
    #expect(read(descriptor) == .end)
    descriptor.close()
    close(theirs)
  }

  @Loop
  @Test func endsWaitsWhenInterruptedAndLetsThemBeginAgain() async throws {
    let (ours, theirs) = try socketPair()
    let descriptor = try Descriptor(owning: ours)
    descriptor.clearReadable()
    let reading = Task { @Loop in await descriptor.untilReadable() }
    await turn()
    descriptor.interrupt()
    #expect(await reading.value == .interrupted)
    #expect(await descriptor.untilWritable() == .interrupted)
    descriptor.resumeWaiting()
    #expect(await descriptor.untilWritable() == .ready)
    send(theirs, "x")
    #expect(await descriptor.untilReadable() == .ready)
    descriptor.close()
    close(theirs)
  }

  /// Between the event and the waiting task's turn, somebody closes the descriptor: its number may be another's by then.
  @Loop
  @Test func isNotReadyWhenItWasClosedBeforeTheWaiterRan() async throws {
    let (ours, theirs) = try socketPair()
    let descriptor = try Descriptor(owning: ours)
    await turn()
    descriptor.clearReadable()
    let reading = Task { @Loop in await descriptor.untilReadable() }
    await turn()
    descriptor.ready(.readable)
    descriptor.close()
    #expect(await reading.value == .interrupted)
    #expect(!descriptor.isOpen)
    close(theirs)
  }

  @Loop
  @Test func closesItsNumberOnce() throws {
    let (ours, theirs) = try socketPair()
    let what = OpenFile(ours)
    let descriptor = try Descriptor(owning: ours)
    descriptor.close()
    #expect(OpenFile(ours) != what)
    // The number goes to somebody else, whom a second close must not hit: to us, unless another test was faster.
    let other = dup(theirs)
    descriptor.close()
    #expect(OpenFile(other) == OpenFile(theirs))
    close(other)
    close(theirs)
  }

  @Loop
  @Test func refusesWhatCannotBeWatchedAndClosesIt() throws {
    let directory = TemporaryDirectory()
    let file = unsafe open(directory.write("file", []), O_RDONLY | O_CLOEXEC)
    let what = OpenFile(file)
    #expect(throws: SystemError(code: EPERM)) { try Descriptor(owning: file) }
    #expect(OpenFile(file) != what)
    #expect(throws: SystemError(code: EBADF)) { try Descriptor(owning: -1) }
  }

  @Loop
  @Test func anotherLibrarysDescriptorIsToldOfForAsLongAsItHolds() async throws {
    let (ours, theirs) = try socketPair()
    var told: [Readiness] = []
    let watched = try WatchedDescriptor(ours, interest: .readable) { told.append($0) }
    await turn()
    #expect(told.isEmpty)
    send(theirs, "x")
    await turn()
    #expect(told.count >= 2)
    watched.watch(for: .writable)
    told = []
    await turn()
    #expect(!told.isEmpty)
    #expect(told.allSatisfy { $0.isDisjoint(with: .readable) })
    watched.stop()
    told = []
    await turn()
    #expect(told.isEmpty)
    close(ours)
    close(theirs)
  }

  @Loop
  @Test func mayBeStoppedAndReplacedWhileItIsBeingTold() async throws {
    let (ours, theirs) = try socketPair()
    var calls = 0
    var second: WatchedDescriptor?
    var first: WatchedDescriptor?
    first = try WatchedDescriptor(ours, interest: .readable) { _ in
      calls += 1
      first?.stop()
      first = nil
      second = try? WatchedDescriptor(ours, interest: .readable) { _ in
        calls += 10
        second?.stop()
      }
    }
    send(theirs, "x")
    await turn()
    #expect(calls == 11)
    close(ours)
    close(theirs)
  }

  // MARK: Pairs of descriptors

  enum Channel: CaseIterable {
    case socket, tcp, pipe

    @Loop
    func open() throws -> (ours: CInt, theirs: CInt) {
      switch self {
      case .socket: try socketPair()
      case .tcp: try tcpPair()
      case .pipe: try pipePair()
      }
    }
  }

  private enum Reading: Equatable {
    case bytes(String)
    case end
    case wouldBlock
    case failed(CInt)
  }

  @Loop
  private func read(_ descriptor: Descriptor) -> Reading {
    var room = [UInt8](repeating: 0, count: 100)
    let count = unsafe Glibc.read(descriptor.number, &room, room.count)
    if count > 0 { return .bytes(String(decoding: room[..<count], as: UTF8.self)) }
    if count == 0 { return .end }
    guard errno == EAGAIN else { return .failed(errno) }
    descriptor.clearReadable()
    return .wouldBlock
  }

  private func send(_ number: CInt, _ text: String) {
    let bytes = Array(text.utf8)
    #expect(unsafe write(number, bytes, bytes.count) == bytes.count)
  }
}

private func socketPair() throws -> (ours: CInt, theirs: CInt) {
  var pair: [CInt] = [0, 0]
  let kind = CInt(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
  try #require(unsafe socketpair(AF_UNIX, kind, 0, &pair) == 0)
  return (pair[0], pair[1])
}

/// What stands behind a number. The number alone says nothing: once closed, it may at once be another test's.
private struct OpenFile: Equatable {
  private let device: dev_t
  private let inode: ino_t

  /// Nil where the number stands for nothing.
  init?(_ number: CInt) {
    var status = stat()
    guard unsafe fstat(number, &status) == 0 else { return nil }
    (device, inode) = (status.st_dev, status.st_ino)
  }
}

private func pipePair() throws -> (ours: CInt, theirs: CInt) {
  var pair: [CInt] = [0, 0]
  try #require(unsafe pipe(&pair) == 0)
  for number in pair { #expect(fcntl(number, F_SETFD, FD_CLOEXEC) == 0) }
  #expect(fcntl(pair[0], F_SETFL, O_NONBLOCK) == 0)
  return (pair[0], pair[1])
}

@Loop
private func tcpPair() throws -> (ours: CInt, theirs: CInt) {
  let kind = CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
  let listening = socket(AF_INET, kind, 0)
  defer { close(listening) }
  var address = sockaddr_storage()
  var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
  let theirs = socket(AF_INET, kind, 0)
  unsafe SocketAddress.loopback(port: 0).withSystemAddress { unsafe _ = bind(listening, $0, $1) }
  #expect(listen(listening, 1) == 0)
  unsafe withUnsafeMutableBytes(of: &address) { raw in
    guard let base = raw.baseAddress else { return }
    unsafe _ = getsockname(listening, base.assumingMemoryBound(to: sockaddr.self), &length)
  }
  let bound = try #require(SocketAddress(address))
  let connected = unsafe bound.withSystemAddress { unsafe connect(theirs, $0, $1) }
  #expect(connected == 0)
  let ours = accept(listening, nil, nil)
  #expect(fcntl(ours, F_SETFD, FD_CLOEXEC) == 0)
  #expect(fcntl(ours, F_SETFL, O_NONBLOCK) == 0)
  return (ours, theirs)
}
