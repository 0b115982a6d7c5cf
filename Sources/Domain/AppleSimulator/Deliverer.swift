import EventLoop
import HTTPClient

/// Brings notifications to the receiver as Apple does: again and again, until the answer is 200.
@Loop
struct Deliverer {
  let client: HTTPClient

  /// Delivers all of them and returns when each was received or given up, or when the task was cancelled.
  func deliver(_ notifications: [SignedNotification], _ plan: DeliveryPlan) async -> [Delivery] {
    var deliveries: [Delivery] = []
    for notification in plan.reversesOrder ? notifications.reversed() : notifications {
      var delivery = Delivery(notification: notification)
      do {
        if plan.delay > .zero { try await Loop.sleep(for: plan.delay) }
        for _ in 0..<plan.copies { try await deliver(notification, plan, &delivery) }
      } catch {
        return deliveries + [delivery]
      }
      deliveries.append(delivery)
    }
    return deliveries
  }

  /// One copy. Throws only `CancellationError`.
  private func deliver(
    _ notification: SignedNotification, _ plan: DeliveryPlan, _ delivery: inout Delivery
  ) async throws {
    var pause = plan.pause
    for attempt in 1...plan.attempts {
      let outcome = await post(notification.body, plan)
      delivery.attempts.append(outcome)
      if outcome == .answered(200) {
        delivery.received += 1
        return
      }
      try Task.checkCancellation()
      if attempt == plan.attempts { return }
      try await Loop.sleep(for: pause)
      pause *= 2
    }
  }

  private func post(_ body: [UInt8], _ plan: DeliveryPlan) async -> Delivery.Attempt {
    let request = HTTPClientRequest.post(
      body, to: plan.receiver, headers: [("Content-Type", "application/json")], isRepeatable: true,
      within: plan.deadline, maximumBodySize: 65_536)
    do throws(HTTPClientError) {
      return .answered(try await client.send(request).status)
    } catch {
      return .failed(error.code)
    }
  }
}
