import CLibrdkafka
import EventLoop
import Glibc
import Synchronization

/// A client of librdkafka's: what Producer, Consumer and Admin have in common. Owns the handle.
///
/// Whatever was taken from the handle (queues, topics) must be given back before `destroy` or the last reference goes.
@safe final class Client: Sendable {
  /// librdkafka's handle. Any thread may use it until it is destroyed.
  @safe struct Handle: @unchecked Sendable {
    let pointer: OpaquePointer
  }

  /// Where log lines go: kept alive for as long as librdkafka's threads run.
  private final class LogTarget: Sendable {
    let log: KafkaLog
    init(_ log: @escaping KafkaLog) { self.log = log }
  }

  let handle: Handle
  private let logTarget: Unmanaged<LogTarget>
  /// Where calls that block run, one after another. Freeing the handle is the last of them, so that no other still
  /// uses it.
  private let thread = BlockingThread(named: "kafka-call")
  private let isDestroyed = Atomic(false)
  private let isConsumer: Bool
  /// Whether freeing the handle would end the process.
  private let mustStay = Atomic(false)
  private let mustStayForGood = Atomic(false)

  init(
    _ type: rd_kafka_type_t, _ configuration: KafkaConfiguration, _ profile: ClientProfile, events: CInt,
    log: @escaping KafkaLog
  ) throws(KafkaError) {
    let settings = try profile.apply(configuration)
    OAuthBearerToken.prepare(settings, for: configuration)
    isConsumer = type == RD_KAFKA_CONSUMER
    let target = unsafe Unmanaged.passRetained(LogTarget(log))
    unsafe rd_kafka_conf_set_opaque(settings.pointer, target.toOpaque())
    unsafe rd_kafka_conf_set_log_cb(settings.pointer) { client, level, facility, text in
      guard let client = unsafe client, let opaque = unsafe rd_kafka_opaque(client) else { return }
      let target = unsafe Unmanaged<LogTarget>.fromOpaque(opaque).takeUnretainedValue()
      target.log(
        KafkaLogLine(
          syslog: level, facility: unsafe facility.map { unsafe String(cString: $0) } ?? "",
          text: unsafe text.map { unsafe String(cString: $0) } ?? ""))
    }
    if type == RD_KAFKA_PRODUCER { unsafe rd_kafka_conf_set_socket_cb(settings.pointer, socketThatForgets) }
    unsafe rd_kafka_conf_set_events(settings.pointer, events)
    var words = [CChar](repeating: 0, count: 512)
    // librdkafka owns the configuration from here on success only.
    let conf = unsafe settings.release()
    guard let pointer = unsafe rd_kafka_new(type, conf, &words, words.count) else {
      unsafe rd_kafka_conf_destroy(conf)
      unsafe target.release()
      throw KafkaError(.invalidConfiguration, detail: configuration.redact(String(terminated: words)))
    }
    unsafe handle = Handle(pointer: pointer)
    unsafe logTarget = target
    unsafe OAuthBearerToken.serve(pointer, for: configuration)
  }

  deinit {
    guard !isDestroyed.load(ordering: .relaxed) else { return }
    // Cleanup that must outlive whoever dropped the client.
    let farewell = farewell
    let thread = thread
    Task { await Self.end(farewell, thread) }
  }

  /// Waits for the calls that were given to `onThread`, leaves the group, ends the client's threads and frees it. May be
  /// called once.
  func destroy() async {
    isDestroyed.store(true, ordering: .relaxed)
    await Self.end(farewell, thread)
  }

  /// Keeps the handle from being freed, until `mayBeFreed`.
  ///
  /// librdkafka before 2.3 aborts the process where a member is freed that has joined its group and has never been given
  /// anything there, not even nothing: its issue 4381. Such a one leaves its group and stays in memory; most often the
  /// process ends then anyway.
  func mustNotBeFreed() { mustStay.store(true, ordering: .relaxed) }

  /// The same for good, where the cluster has taken away a partition that the reader was given.
  ///
  /// librdkafka 2.0 never returns from the call that frees such a reader, though it closes in order: a thread of it waits for
  /// another one that never ends. It stays in memory, once for each time that a topic is made anew with fewer partitions.
  func mustNeverBeFreed() { mustStayForGood.store(true, ordering: .relaxed) }

  /// Takes `mustNotBeFreed` back.
  func mayBeFreed() { mustStay.store(false, ordering: .relaxed) }

  private var farewell: @Sendable () -> Void {
    let (handle, target) = unsafe (handle, logTarget.takeUnretainedValue())
    let (isConsumer, stays) = (
      isConsumer, mustStay.load(ordering: .relaxed) || mustStayForGood.load(ordering: .relaxed)
    )
    return {
      if isConsumer { unsafe rd_kafka_consumer_close(handle.pointer) }
      // librdkafka's threads go on where it stays, and so does what they log to.
      if stays { return }
      unsafe rd_kafka_destroy(handle.pointer)
      unsafe Unmanaged.passUnretained(target).release()
    }
  }

  private static func end(_ farewell: @escaping @Sendable () -> Void, _ thread: BlockingThread) async {
    await thread.run(farewell)
    thread.close()
  }

  /// Makes a call that blocks, once those that were given before it are done.
  func onThread<Value: Sendable>(
    _ call: @escaping @Sendable () -> Result<Value, KafkaError>
  ) async throws(KafkaError) -> Value {
    guard !isDestroyed.load(ordering: .relaxed) else { throw KafkaError(.closed, detail: "the client is closed") }
    return try await thread.run(call).get()
  }
}

extension Client {
  /// The value that a property has, by default or by the user.
  subscript(property: String) -> String? {
    unsafe ClientConfiguration.value(of: property, in: rd_kafka_conf(handle.pointer))
  }

  /// Takes one of the client's queues into the loop.
  @Loop
  func queue(_ get: (OpaquePointer?) -> OpaquePointer?) throws(KafkaError) -> EventQueue {
    guard let queue = unsafe get(handle.pointer) else {
      throw KafkaError(.other, detail: "librdkafka has no such queue")
    }
    do throws(SystemError) {
      return try unsafe EventQueue(owning: queue)
    } catch {
      throw KafkaError(.other, detail: "no file descriptor for librdkafka's events: \(error)")
    }
  }
}

/// Makes a socket of which the kernel sends nothing more once it is closed, by us or with the process. Else what a network
/// held back would reach the broker later, behind what the next producer sent meanwhile, which has another identity: the
/// broker could not tell that it is old.
private func socketThatForgets(domain: CInt, type: CInt, number: CInt, _: UnsafeMutableRawPointer?) -> CInt {
  let descriptor = socket(domain, type | CInt(SOCK_CLOEXEC.rawValue), number)
  var nothing = linger(l_onoff: 1, l_linger: 0)
  if descriptor >= 0 {
    _ = unsafe setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &nothing, socklen_t(MemoryLayout<linger>.size))
  }
  return descriptor
}
