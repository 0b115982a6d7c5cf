import Glibc

/// A program that is measured from its start to its end, as the kernel counts it.
struct SpawnedProgram {
  let path: String

  init(_ path: String) { self.path = path }

  /// It did not end with 0.
  struct Failure: Error { let status: CInt }

  /// Runs it with its output passed over. Returns what it took, and what it had in memory at most.
  func run(_ arguments: [String]) throws -> (spent: Times, peakMegabytes: Int) {
    var words = unsafe ([path] + arguments).map { unsafe strdup($0) } + [nil]
    defer { unsafe words.forEach { unsafe free($0) } }
    var actions = unsafe posix_spawn_file_actions_t()
    unsafe posix_spawn_file_actions_init(&actions)
    defer { unsafe posix_spawn_file_actions_destroy(&actions) }
    unsafe posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0)
    var (process, status, usage) = (pid_t(), CInt(), rusage())
    let start = Times.now
    guard unsafe posix_spawn(&process, path, &actions, nil, &words, environ) == 0,
      unsafe wait4(process, &status, 0, &usage) == process, status == 0
    else { throw Failure(status: status) }
    let cpu = [usage.ru_utime, usage.ru_stime].reduce(0) { $0 + Double($1.tv_sec) + Double($1.tv_usec) / 1e6 }
    return (Times(wall: (Times.now - start).wall, cpu: cpu), usage.ru_maxrss / 1024)
  }
}
