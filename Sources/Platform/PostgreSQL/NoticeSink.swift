import CLibpq
import Synchronization

/// Where libpq leaves what a server says beside its answers.
final class NoticeSink: Sendable {
  /// Whether the server has said why it ends the connection.
  let isFarewell = Atomic(false)
  private let log: PostgreSQLLog

  init(_ log: @escaping PostgreSQLLog) { self.log = log }

  /// Has libpq call this object, which must outlive the connection.
  func listen(to connection: OpaquePointer) {
    unsafe PQsetNoticeReceiver(
      connection,
      { here, result in
        guard let here = unsafe here else { return }
        let sink = unsafe Unmanaged<NoticeSink>.fromOpaque(here).takeUnretainedValue()
        let notice = unsafe PostgreSQLNotice(result)
        if ["FATAL", "PANIC"].contains(notice.severity) { sink.isFarewell.store(true, ordering: .relaxed) }
        sink.log(notice)
      }, Unmanaged.passUnretained(self).toOpaque())
  }
}
