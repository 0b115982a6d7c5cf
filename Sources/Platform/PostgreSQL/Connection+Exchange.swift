import CLibpq
import EventLoop

extension Connection {
  /// What is asked of the server within an exchange.
  enum Step {
    case command(StaticString)
    case prepare(Execution.Statement, name: String)
    case execute(Execution, name: String)
  }

  /// What the server answered.
  struct Answer {
    /// How many rows each execution has concerned.
    var counts: [Int] = []
    /// What failed first.
    var failure: PostgreSQLError?
  }

  /// Executes all, preparing on the way what is not yet, and beginning the transaction that is to be begun.
  func perform(
    _ executions: [Execution], isNumbered: Bool = false, row: (Int, borrowing Row) throws(PostgreSQLError) -> Void
  ) async throws(PostgreSQLError) -> [Int] {
    var steps: [Step] = []
    if let transaction, !transaction.hasBegun { steps.append(.command(transaction.beginning)) }
    var names = prepared
    for execution in executions {
      // PostgreSQL takes no larger message.
      guard execution.parameters.bytes.count < 1 << 30 else {
        throw PostgreSQLError(.tooLarge, detail: "values of more than a gibibyte")
      }
      if names[execution.statement] == nil {
        preparations += 1
        names[execution.statement] = "s\(preparations)"
        steps.append(.prepare(execution.statement, name: "s\(preparations)"))
      }
      steps.append(.execute(execution, name: names[execution.statement] ?? ""))
    }
    do throws(PostgreSQLError) {
      return try await exchange(steps, row: row).counts
    } catch {
      var error = error
      if !isNumbered { error.execution = nil }
      throw error
    }
  }

  /// Begins the transaction now, if there is one to be begun.
  func begin() async throws(PostgreSQLError) {
    guard let transaction, !transaction.hasBegun else { return }
    try await exchange([.command(transaction.beginning)])
  }

  /// Sends the steps in one go, and reads all answers. With `isFinal` the steps decide about a transaction: they are not
  /// cancelled, and without an answer nobody knows what became of it.
  @discardableResult
  func exchange(
    _ steps: [Step], isFinal: Bool = false,
    row: (Int, borrowing Row) throws(PostgreSQLError) -> Void = { _, _ throws(PostgreSQLError) in }
  ) async throws(PostgreSQLError) -> Answer {
    try await alone(isFinal: isFinal) { (answer) async throws(PostgreSQLError) in
      for step in steps { try send(step) }
      try unsafe link.send { unsafe PQpipelineSync($0) }
      for step in steps { try await read(step, into: &answer, row) }
      // What fails here failed as the server committed: a constraint that was deferred.
      var isOver = false
      while !isOver {
        guard let result = try await link.next() else { continue }
        isOver = result.status == PGRES_PIPELINE_SYNC
        if result.status == PGRES_FATAL_ERROR { note(result.error, in: &answer) }
      }
    }
  }

  /// Runs a text of statements, for which libpq must not be in pipeline mode.
  func converse(_ script: StaticString) async throws(PostgreSQLError) {
    try await alone(isFinal: false) { (answer) async throws(PostgreSQLError) in
      try unsafe link.send { unsafe PQexitPipelineMode($0) }
      try unsafe link.send { unsafe PQsendQuery($0, script.description) }
      while let result = try await link.next() {
        switch result.status {
        case PGRES_FATAL_ERROR: note(result.error, in: &answer)
        case PGRES_COPY_IN, PGRES_COPY_OUT, PGRES_COPY_BOTH: throw Self.copying
        default: break
        }
      }
      try unsafe link.send { unsafe PQenterPipelineMode($0) }
    }
  }

  private static let copying = PostgreSQLError(.statement, detail: "COPY is not supported")

  /// Holds the connection for one exchange, within its time. Where `body` throws, the connection is lost.
  @discardableResult
  private func alone(
    isFinal: Bool, _ body: (inout Answer) async throws(PostgreSQLError) -> Void
  ) async throws(PostgreSQLError) -> Answer {
    precondition(!isBusy, "two tasks use one connection")
    if let end = link.end {
      if transaction?.failure == nil { transaction?.failure = end }
      throw end
    }
    if !isFinal, Task.isCancelled { throw .cancelled }
    isBusy = true
    isCancellable = !isFinal
    exchanges += 1
    let number = exchanges
    link.begin(within: responseTimeout)
    var answer = Answer()
    let loss = await withTaskCancellationHandler { () async -> PostgreSQLError? in
      do throws(PostgreSQLError) {
        try await body(&answer)
        return nil
      } catch {
        return error
      }
    } onCancel: {
      Task { @Loop in self.giveUp(number) }
    }
    isBusy = false
    link.finish()
    if let loss {
      // What the server said before it was gone says more.
      var failure = answer.failure ?? loss
      // In a transaction the server rolls back what has no end. Elsewhere it may have come to its end.
      failure.isUncertain = isFinal || transaction == nil
      transaction?.failure = failure
      link.end(failure)
      throw failure
    }
    if let failure = answer.failure { throw failure }
    return answer
  }

  /// Ends the connection where the exchange of that number is still waiting.
  private func giveUp(_ number: Int) {
    if isBusy, isCancellable, exchanges == number { link.end(.cancelled) }
  }

  private func send(_ step: Step) throws(PostgreSQLError) {
    switch step {
    case .command(let text):
      try unsafe link.send { unsafe PQsendQueryParams($0, text.description, 0, nil, nil, nil, nil, 1) }
    case .prepare(let statement, let name):
      try unsafe link.send {
        unsafe PQsendPrepare($0, name, statement.text.description, CInt(statement.types.count), statement.types)
      }
    case .execute(let execution, let name):
      let parameters = execution.parameters
      try unsafe link.send { connection in
        unsafe parameters.bytes.withUnsafeBytes { bytes in
          unsafe clibpq_send_prepared(
            connection, name, CInt(parameters.lengths.count), bytes.baseAddress, parameters.lengths)
        }
      }
    }
  }

  private func read(
    _ step: Step, into answer: inout Answer, _ row: (Int, borrowing Row) throws(PostgreSQLError) -> Void
  ) async throws(PostgreSQLError) {
    if case .execute = step { try link.readRowsOneByOne() }
    while let result = try await link.next() {
      switch result.status {
      case PGRES_SINGLE_TUPLE:
        guard answer.failure == nil else { continue }
        do throws(PostgreSQLError) { try row(answer.counts.count, unsafe Row(result: result.handle)) } catch {
          answer.failure = error
        }
      case PGRES_COMMAND_OK, PGRES_TUPLES_OK:
        switch step {
        case .command: transaction?.hasBegun = true
        case .prepare(let statement, let name): prepared[statement] = name
        case .execute: answer.counts.append(result.count)
        }
      case PGRES_FATAL_ERROR:
        note(result.error, in: &answer)
        if case .command = step {} else { answer.failure?.execution = answer.counts.count }
      case PGRES_PIPELINE_ABORTED: break
      case PGRES_EMPTY_QUERY: throw PostgreSQLError(.statement, detail: "a statement of nothing")
      case PGRES_COPY_IN, PGRES_COPY_OUT, PGRES_COPY_BOTH: throw Self.copying
      default: throw PostgreSQLError(.server, detail: "an answer that is not understood: \(result.status.rawValue)")
      }
    }
  }

  private func note(_ error: PostgreSQLError, in answer: inout Answer) {
    // The server cannot forget single plans that do not fit any more; they go under new names.
    if error.code == .stalePlan { prepared = [:] }
    if error.code == .readOnly { isReadOnly = true }
    if transaction?.failure == nil { transaction?.failure = error }
    if answer.failure == nil { answer.failure = error }
  }
}
