import EventLoop
import Glibc

/// The program `age`, which encrypts and decrypts on the way from a pipe to a file, or from a file to a pipe: nothing is ever
/// on a disk in the clear.
package struct Age: Sendable {
  private let environment: [String: String]

  /// The one on this `PATH`.
  package init(_ environment: [String: String]) {
    self.environment = environment.filter { ["PATH", "HOME"].contains($0.key) }
  }

  /// A running program, and the end of the pipe that is ours.
  final class Conversation {
    let descriptor: CInt
    private let identifier: pid_t
    private var isClosed = false
    private var isOver = false

    fileprivate init(_ identifier: pid_t, _ descriptor: CInt) {
      (self.identifier, self.descriptor) = (identifier, descriptor)
    }

    deinit {
      if !isOver { kill(identifier, SIGKILL) }
      _ = finish()
    }

    /// Closes the pipe, waits for the end, and says whether all went well. What did not, the program has said itself.
    func finish() -> Bool {
      if !isClosed { close(descriptor) }
      isClosed = true
      guard !isOver else { return false }
      var status: CInt = 0
      while unsafe waitpid(identifier, &status, 0) < 0, errno == EINTR {}
      isOver = true
      return status == 0
    }
  }

  /// Encrypts to `recipient` what is written to the conversation, into the file.
  func encrypt(to recipient: String, into file: CInt) throws(SystemError) -> Conversation {
    let pipe = try ChildProcess.Pipe()
    defer { close(pipe.reading) }
    return try start(["--encrypt", "--recipient", recipient], from: pipe.reading, to: file, ours: pipe.writing)
  }

  /// Decrypts the file with the identity of that file; what it holds can be read from the conversation. Only where the
  /// conversation ended well, it was whole.
  func decrypt(with identity: String, _ file: CInt) throws(SystemError) -> Conversation {
    let pipe = try ChildProcess.Pipe()
    defer { close(pipe.writing) }
    return try start(["--decrypt", "--identity", identity], from: file, to: pipe.writing, ours: pipe.reading)
  }

  private func start(
    _ words: [String], from input: CInt, to output: CInt, ours: CInt
  ) throws(SystemError) -> Conversation {
    do throws(SystemError) {
      let identifier = try ChildProcess.spawn(
        ["age"] + words, environment, (input, output, STDERR_FILENO), inGroupOfItsOwn: false)
      return Conversation(identifier, ours)
    } catch {
      close(ours)
      throw error
    }
  }
}
