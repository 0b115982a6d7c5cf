import CLinux
import Glibc

/// What the kernel said about a file descriptor.
public struct Readiness: OptionSet, Sendable {
  /// The bits of epoll(7).
  public let rawValue: UInt32

  /// Wraps bits as epoll reports them.
  public init(rawValue: UInt32) { self.rawValue = rawValue }

  /// There is something to read, or the peer has closed its side.
  public static let readable = Readiness(rawValue: EPOLLIN.rawValue | EPOLLRDHUP.rawValue)
  /// There is room to write.
  public static let writable = Readiness(rawValue: EPOLLOUT.rawValue)
  /// Both sides are closed, or the descriptor is broken.
  public static let hangup = Readiness(rawValue: EPOLLHUP.rawValue | EPOLLERR.rawValue)
  /// The other side sends nothing more: what is left to read is followed by the end.
  static let ended = Readiness(rawValue: EPOLLRDHUP.rawValue | EPOLLHUP.rawValue)
}

/// Something that is told when its descriptor is ready.
@Loop
protocol ReadinessHandler: AnyObject {
  /// Called on the loop, between jobs. It must not block, and it may remove its own registration.
  func ready(_ readiness: Readiness)
}

/// A descriptor's place in the loop, valid until it is removed.
struct Registration: Sendable {
  let slot: UInt32
  let generation: UInt32
  let descriptor: CInt
}

/// How a descriptor is watched.
enum Trigger: Sendable {
  /// Told once for each change: the handler reads and writes until the kernel says that it would block.
  case edge
  /// Told for as long as it holds: for libraries that do not read until the kernel says that it would block.
  case level(Readiness)
}

/// The epoll instance, the registered descriptors and the deadlines. Only the loop's thread touches it, but for `wake`.
@safe final class Engine {
  private struct Slot {
    var handler: (any ReadinessHandler)?
    var generation: UInt32 = 0
  }

  private static let wakeMark = UInt64.max
  private static let batch = 256

  private let epoll: CInt
  private let bell: CInt
  private var slots: [Slot] = []
  private var free: [UInt32] = []
  @safe private let events: UnsafeMutablePointer<epoll_event>
  var waitingForTurn: [@Loop () -> Void] = []
  var deadlines = DeadlineHeap()
  var observers: [(identifier: ObjectIdentifier, action: @Loop (Duration) -> Void)] = []
  var now = MonotonicTime.now
  var wasWoken = false

  init() {
    epoll = clinux_epoll_create()
    bell = clinux_eventfd()
    // A process that cannot have these two has no descriptors at all: nothing can run in it.
    precondition(epoll >= 0 && bell >= 0, "no file descriptor for the event loop: \(SystemError.current)")
    events = .allocate(capacity: Self.batch)
    _ = clinux_epoll_control(epoll, EPOLL_CTL_ADD, bell, EPOLLIN.rawValue | EPOLLET.rawValue, Self.wakeMark)
  }

  /// Wakes the loop; from any thread.
  func wake() {
    var one: UInt64 = 1
    _ = unsafe write(bell, &one, 8)
  }

  @Loop
  func add(
    _ descriptor: CInt, _ trigger: Trigger, _ handler: any ReadinessHandler
  ) throws(SystemError) -> Registration {
    let slot: UInt32
    if let reused = free.popLast() {
      slot = reused
    } else {
      slot = UInt32(slots.count)
      slots.append(Slot())
    }
    let generation = slots[Int(slot)].generation
    let registration = Registration(slot: slot, generation: generation, descriptor: descriptor)
    guard control(EPOLL_CTL_ADD, registration, trigger) == 0 else {
      let error = SystemError.current
      free.append(slot)
      throw error
    }
    slots[Int(slot)].handler = handler
    return registration
  }

  @Loop
  func modify(_ registration: Registration, _ trigger: Trigger) {
    guard slots[Int(registration.slot)].generation == registration.generation else { return }
    _ = control(EPOLL_CTL_MOD, registration, trigger)
  }

  /// Forgets the descriptor; the caller closes it afterwards.
  @Loop
  func remove(_ registration: Registration) {
    let index = Int(registration.slot)
    guard slots[index].generation == registration.generation else { return }
    _ = clinux_epoll_control(epoll, EPOLL_CTL_DEL, registration.descriptor, 0, 0)
    slots[index].handler = nil
    // An event of this turn that still names the slot carries the old generation, and is dropped.
    slots[index].generation &+= 1
    free.append(registration.slot)
  }

  private func control(_ operation: CInt, _ registration: Registration, _ trigger: Trigger) -> CInt {
    let mask =
      switch trigger {
      case .edge: Readiness.readable.rawValue | Readiness.writable.rawValue | EPOLLET.rawValue
      case .level(let readiness): readiness.rawValue
      }
    let mark = UInt64(registration.generation) << 32 | UInt64(registration.slot)
    return clinux_epoll_control(epoll, operation, registration.descriptor, mask, mark)
  }

  /// Calls what was due when the kernel was last asked. What it reported then has been worked on since: so whoever was
  /// served in time has moved its deadline, however long the loop was kept from turning.
  @Loop
  func passDeadlines() {
    // One at a time: an action may set and clear deadlines. And no more than there are: one that sets itself anew to a
    // moment that has passed must not keep the loop here.
    for _ in 0..<deadlines.count {
      guard let passed = deadlines.popPassed(now) else { return }
      passed.pass()
    }
  }

  /// Waits for the kernel (not at all if there is work already), then tells handlers.
  @Loop
  func poll(block: Bool) {
    let block = block && waitingForTurn.isEmpty
    let asked = MonotonicTime.now
    for observer in observers { observer.action(asked - now) }
    var count = unsafe epoll_wait(epoll, events, CInt(Self.batch), block ? patience(from: asked) : 0)
    now = .now
    if count < 0 { count = 0 }  // EINTR: nothing else can go wrong with these arguments
    for index in 0..<Int(count) {
      let mark = unsafe clinux_event_data(events + index)
      if mark == Self.wakeMark {
        // Edge-triggered: each write is reported, though nobody reads the count.
        wasWoken = true
        continue
      }
      let slot = Int(truncatingIfNeeded: mark & 0xffff_ffff)
      guard slots[slot].generation == UInt32(truncatingIfNeeded: mark >> 32) else { continue }
      slots[slot].handler?.ready(Readiness(rawValue: unsafe clinux_event_mask(events + index)))
    }
    guard !waitingForTurn.isEmpty else { return }
    var waiting: [@Loop () -> Void] = []
    // Only what was there: an action may ask for the turn after this one.
    swap(&waiting, &waitingForTurn)
    for action in waiting { action() }
  }

  /// How long epoll may wait, in milliseconds, rounded up so that a deadline is due when it returns.
  private func patience(from asked: MonotonicTime) -> CInt {
    guard let next = deadlines.next else { return -1 }
    let left = next.nanoseconds &- asked.nanoseconds
    if left <= 0 { return 0 }
    return CInt(clamping: (left &+ 999_999) / 1_000_000)
  }
}
