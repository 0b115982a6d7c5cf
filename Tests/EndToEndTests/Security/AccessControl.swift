import CLibrdkafka
import Glibc
import Testing

/// Grants rights on a cluster and takes them away, as whoever may do all.
@safe final class AccessControl {
  private let client: OpaquePointer

  init(_ brokers: String) throws {
    var words = [CChar](repeating: 0, count: 512)
    let conf = unsafe rd_kafka_conf_new()
    _ = unsafe rd_kafka_conf_set(conf, "bootstrap.servers", brokers, &words, words.count)
    unsafe client = try #require(rd_kafka_new(RD_KAFKA_PRODUCER, conf, &words, words.count))
  }

  deinit { unsafe rd_kafka_destroy(client) }

  func grant(_ rules: [AccessRule]) throws {
    try unsafe ask { queue in
      var bindings: [OpaquePointer?] = unsafe []
      for rule in rules {
        unsafe bindings.append(
          rd_kafka_AclBinding_new(
            rule.resource.kind, rule.name, rule.resource.pattern, rule.principal, "*", try rule.kindOfOperation,
            RD_KAFKA_ACL_PERMISSION_TYPE_ALLOW, nil, 0))
      }
      unsafe rd_kafka_CreateAcls(client, &bindings, bindings.count, nil, queue)
      unsafe bindings.forEach { unsafe rd_kafka_AclBinding_destroy($0) }
    } check: { event in
      var count = 0
      let results = unsafe rd_kafka_CreateAcls_result_acls(rd_kafka_event_CreateAcls_result(event), &count)
      #expect(count == rules.count)
      for index in 0..<count { #expect(unsafe rd_kafka_acl_result_error(results?[index]) == nil) }
    }
  }

  func takeAway(_ rule: AccessRule) throws {
    try unsafe ask { queue in
      var filter = try unsafe rule.filter
      unsafe rd_kafka_DeleteAcls(client, &filter, 1, nil, queue)
      unsafe rd_kafka_AclBinding_destroy(filter)
    } check: { event in
      var count = 0
      let responses = unsafe rd_kafka_DeleteAcls_result_responses(rd_kafka_event_DeleteAcls_result(event), &count)
      try #require(count == 1)
      _ = unsafe rd_kafka_DeleteAcls_result_response_matching_acls(responses?[0], &count)
      #expect(count == 1, "no such right was granted: \(rule)")
    }
  }

  /// Whether the broker goes by such a right.
  func isGranted(_ rule: AccessRule) throws -> Bool {
    var count = 0
    try unsafe ask { queue in
      let filter = try unsafe rule.filter
      unsafe rd_kafka_DescribeAcls(client, filter, nil, queue)
      unsafe rd_kafka_AclBinding_destroy(filter)
    } check: { event in
      _ = unsafe rd_kafka_DescribeAcls_result_acls(rd_kafka_event_DescribeAcls_result(event), &count)
    }
    return count > 0
  }

  private func ask(
    _ body: (OpaquePointer?) throws -> Void, check: (OpaquePointer?) throws -> Void
  ) throws {
    let queue = unsafe rd_kafka_queue_new(client)
    defer { unsafe rd_kafka_queue_destroy(queue) }
    try unsafe body(queue)
    let event = unsafe rd_kafka_queue_poll(queue, 120_000)
    defer { unsafe rd_kafka_event_destroy(event) }
    try #require(unsafe rd_kafka_event_error(event) == RD_KAFKA_RESP_ERR_NO_ERROR)
    try unsafe check(event)
  }
}

extension AccessRule {
  /// What such a right is found by; whoever asks destroys it.
  fileprivate var filter: OpaquePointer? {
    get throws {
      unsafe rd_kafka_AclBindingFilter_new(
        resource.kind, name, resource.pattern, principal, "*", try kindOfOperation, RD_KAFKA_ACL_PERMISSION_TYPE_ALLOW,
        nil, 0)
    }
  }

  fileprivate var kindOfOperation: rd_kafka_AclOperation_t {
    get throws {
      let operations = [
        "Read": RD_KAFKA_ACL_OPERATION_READ, "Write": RD_KAFKA_ACL_OPERATION_WRITE,
        "Create": RD_KAFKA_ACL_OPERATION_CREATE, "Describe": RD_KAFKA_ACL_OPERATION_DESCRIBE,
        "DescribeConfigs": RD_KAFKA_ACL_OPERATION_DESCRIBE_CONFIGS,
      ]
      return try #require(operations[operation], "\(self)")
    }
  }
}

extension AccessRule.Resource {
  fileprivate var kind: rd_kafka_ResourceType_t { self == .group ? RD_KAFKA_RESOURCE_GROUP : RD_KAFKA_RESOURCE_TOPIC }

  fileprivate var pattern: rd_kafka_ResourcePatternType_t {
    self == .prefix ? RD_KAFKA_RESOURCE_PATTERN_PREFIXED : RD_KAFKA_RESOURCE_PATTERN_LITERAL
  }
}
