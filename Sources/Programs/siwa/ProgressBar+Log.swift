extension ProgressBar {
  /// The same of entries of a log, whose number is never below zero.
  func note(done: UInt64, of total: UInt64) { note(done: Int64(clamping: done), of: Int64(clamping: total)) }
}
