import CLibrdkafka
import CLinux
import EventLoop
import Glibc

/// A queue of librdkafka's that tells the loop when something was put into it while it was empty.
///
/// librdkafka writes to an eventfd then, which is watched edge-triggered and therefore never read: one wake-up serves
/// all that has come, and costs one system call on either side.
@Loop
@safe final class EventQueue {
  /// librdkafka's queue, for as long as this is not closed.
  let pointer: OpaquePointer
  private let bell: CInt
  /// Called on the loop, between jobs, when something was put into the empty queue.
  var onEvents: (@Loop () -> Void)?
  private var watch: WatchedDescriptor?

  /// Takes over librdkafka's reference to the queue.
  init(owning queue: OpaquePointer) throws(SystemError) {
    unsafe pointer = queue
    bell = clinux_eventfd()
    guard bell >= 0 else {
      let error = SystemError.current
      unsafe rd_kafka_queue_destroy(queue)
      throw error
    }
    do throws(SystemError) {
      watch = try WatchedDescriptor(edgesOf: bell) { [weak self] _ in self?.onEvents?() }
    } catch {
      unsafe rd_kafka_queue_destroy(queue)
      Glibc.close(bell)
      throw error
    }
    var one: UInt64 = 1
    // librdkafka copies the eight bytes. The count would overflow after 2^64 wake-ups.
    unsafe rd_kafka_queue_io_event_enable(queue, bell, &one, 8)
  }

  /// The next event, which the caller destroys; nil when there is none.
  func next() -> OpaquePointer? {
    guard watch != nil else { return nil }
    return unsafe rd_kafka_queue_poll(pointer, 0)
  }

  /// Gives the queue back. Later calls do nothing.
  func close() {
    guard let watch else { return }
    self.watch = nil
    onEvents = nil
    watch.stop()
    unsafe rd_kafka_queue_io_event_enable(pointer, -1, nil, 0)  // taken under the queue's lock: no write comes after it
    unsafe rd_kafka_queue_destroy(pointer)
    Glibc.close(bell)
  }
}
