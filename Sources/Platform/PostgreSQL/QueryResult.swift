import CLibpq

/// One answer of the server's, freed with the end of its use.
@safe struct QueryResult: ~Copyable {
  let handle: OpaquePointer

  init(owning handle: OpaquePointer) { unsafe self.handle = handle }

  deinit { unsafe PQclear(handle) }

  var status: ExecStatusType { unsafe PQresultStatus(handle) }

  /// How many rows it inserted, changed, deleted or returned; 0 where it does none of them.
  var count: Int { Int(unsafe String(cString: PQcmdTuples(handle))) ?? 0 }

  var error: PostgreSQLError { unsafe PostgreSQLError(handle) }
}
