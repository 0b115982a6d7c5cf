import CLinux
package import Glibc
import Synchronization

/// Starts other programs.
package enum ChildProcess {
  /// Both ends of a pipe that no program inherits unless it is told to.
  package struct Pipe {
    /// The end to read from.
    package let reading: CInt
    /// The end to write to.
    package let writing: CInt

    /// What a pipe holds, in bytes, where the system lets it: all pipes of an ordinary user together may hold 64 MiB.
    private static let room: CInt = 1 << 18

    /// Makes the pipe. Its ends stay open until they are closed.
    package init() throws(SystemError) {
      var numbers: [CInt] = [0, 0]
      guard unsafe clinux_pipe(&numbers, Self.room) == 0 else { throw .current }
      (reading, writing) = (numbers[0], numbers[1])
    }
  }

  /// Held while a program is started.
  private static let starting = Mutex(())

  /// Calls `body` while no program is started. Until it is another program, a new process has a copy of every descriptor
  /// of this one, O_CLOEXEC or not, and what is closed here meanwhile stays open there: a socket keeps its address.
  package static func whileNoneIsStarted<Value>(_ body: () -> Value) -> Value { starting.withLock { _ in body() } }

  /// Starts the program that `arguments` begin with, at a path or on `PATH`, with these descriptors as its first three and
  /// no others, and with no signal blocked or ignored. In a group of its own, a signal can reach all that it starts in turn.
  package static func spawn(
    _ arguments: [String], _ environment: [String: String], _ descriptors: (CInt, CInt, CInt),
    inGroupOfItsOwn: Bool
  ) throws(SystemError) -> pid_t {
    var actions = unsafe posix_spawn_file_actions_t()
    unsafe posix_spawn_file_actions_init(&actions)
    defer { unsafe posix_spawn_file_actions_destroy(&actions) }
    unsafe posix_spawn_file_actions_adddup2(&actions, descriptors.0, 0)
    unsafe posix_spawn_file_actions_adddup2(&actions, descriptors.1, 1)
    unsafe posix_spawn_file_actions_adddup2(&actions, descriptors.2, 2)
    unsafe clinux_spawn_close_from(&actions, 3)
    var attributes = posix_spawnattr_t()
    unsafe posix_spawnattr_init(&attributes)
    defer { unsafe posix_spawnattr_destroy(&attributes) }
    var (none, all) = (sigset_t(), sigset_t())
    unsafe sigemptyset(&none)
    unsafe sigfillset(&all)
    unsafe posix_spawnattr_setsigmask(&attributes, &none)
    unsafe posix_spawnattr_setsigdefault(&attributes, &all)
    unsafe posix_spawnattr_setpgroup(&attributes, 0)
    let flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | (inGroupOfItsOwn ? POSIX_SPAWN_SETPGROUP : 0)
    unsafe posix_spawnattr_setflags(&attributes, Int16(flags))
    var identifier: pid_t = 0
    let variables = environment.map { "\($0.key)=\($0.value)" }
    let failure: CInt = unsafe withCStrings(arguments) { arguments -> CInt in
      unsafe withCStrings(variables) { environment -> CInt in
        guard let program = unsafe arguments[0] else { return EINVAL }
        // It returns when the process is the program, or could not be.
        return starting.withLock { _ in
          unsafe posix_spawnp(&identifier, program, &actions, &attributes, arguments, environment)
        }
      }
    }
    guard failure == 0 else { throw SystemError(code: failure) }
    return identifier
  }

  /// Calls `body` with the strings as C has them, and a null pointer behind the last.
  private static func withCStrings<Value>(
    _ strings: [String], _ body: (UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>) -> Value
  ) -> Value {
    var pointers = unsafe strings.map { unsafe strdup($0) } + [nil]
    defer { unsafe pointers.forEach { unsafe free($0) } }
    return unsafe pointers.withUnsafeMutableBufferPointer { buffer in
      guard let start = buffer.baseAddress else { preconditionFailure("there is a null pointer at least") }
      return unsafe body(start)
    }
  }
}
